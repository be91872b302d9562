"""Record batches: headers, records, codecs, control records. Pure functions over bytes that know of no log and no request."""
