"""Generated: one module per RPC (request and response) and per record, imported when first needed."""
