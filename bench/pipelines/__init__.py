"""Pipelines beside the same job written by hand in plain Structured Streaming, on our source and on Spark's connector."""
