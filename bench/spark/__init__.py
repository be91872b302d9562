"""What Spark's half costs, beside Spark's own Kafka connector: ``python -m bench.spark`` (docs/benchmarks.md says how)."""
