"""TLS and SASL_SSL beside a warm Apache Kafka and a limit in C: ``python -m bench.secure`` (docs/benchmarks.md says how)."""
