"""tidelog: event streaming that speaks Kafka's wire protocol and writes Kafka's files."""

__version__ = "0.1.0.dev0"
