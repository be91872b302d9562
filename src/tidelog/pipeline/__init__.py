"""Pipelines: topics, decoded and cleaned, into tables, each record once.

A pipeline is one frozen model (``model``), spelled in YAML (``yaml_text``) or in Python (``decorators``). Everything that needs
Spark is imported when a pipeline runs, so that models can be checked where no Spark is. Why it is built so:
docs/adr/0015-pipelines.md.
"""
