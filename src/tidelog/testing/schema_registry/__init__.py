"""A schema registry in memory with Confluent's REST API, for tests of code that serializes through one.

    with SchemaRegistry() as registry:
        client = SchemaRegistryClient({"url": registry.url})

``server`` has the HTTP and the public class, ``rest`` the paths, ``store`` what is registered, ``formats`` what Avro, JSON Schema
and Protobuf mean by valid and compatible. The parsers come with ``tidelog[testing]``, and are imported when a schema needs them.
"""
