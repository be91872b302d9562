"""A schema registry in memory with Confluent's REST API, for tests of code that serializes through one.

with SchemaRegistry() as registry: client = SchemaRegistryClient({"url": registry.url})

``server`` has the HTTP and the public class; the rest is ``tidelog.registry``. The parsers come with ``tidelog[testing]``, and
are imported when a schema needs them.
"""
