"""A handler for each API, in modules by subject. The table of them is ``broker.table``."""
