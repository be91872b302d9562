"""The bulk lane: topics into tables of files with no row passing through Spark. ``ingest`` is the way in.

Tasks fetch, decode and write Parquet files (``files``); what goes through Spark is one row for each task, which says which
files it wrote (``source``); the driver commits them (``ingest``). Offsets, triggers, limits and retries are Spark's, as with
any stream."""

from tidelog.pipeline.bulk.ingest import ingest

__all__ = ["ingest"]
