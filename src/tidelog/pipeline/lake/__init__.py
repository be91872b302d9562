"""Tables of files: which files are in a table, and which offsets of which topics they hold.

``landed`` decides whether a batch may still be written; ``table`` is the interface of a table of files; ``manifests`` is a table
of plain Parquet with its own commit log; ``delta`` and ``iceberg`` are tables in those formats. Why: docs/adr/0016-bulk-lane.md.
"""
