"""Tables that are made of files: which files are in a table, and which offsets of which topics they hold.

``landed`` decides whether a batch may still be written; ``table`` is what a table of files offers; ``manifests`` is a table
of plain Parquet with a commit log of its own, ``delta`` and ``iceberg`` the same on formats of others. Why:
docs/adr/0016-bulk-lane.md."""
