"""API handlers, in modules by subject. The table of APIs is ``broker.table``."""
