"""tidelog beside a warm Apache Kafka and a limit in C: ``python -m bench.warm --help`` (docs/benchmarks.md says how)."""
