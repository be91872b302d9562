"""``engine: jvm``: topics into topics in Spark's real-time mode, in milliseconds, by Spark's own Kafka connector.

Rows never leave the JVM, so there are no Python functions over rows here, and Spark's sink is at least once
(docs/adr/0019-real-time.md).
"""
