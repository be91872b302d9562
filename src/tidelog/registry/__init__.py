"""A schema registry with Confluent's REST API over the topic ``_schemas`` of any Kafka cluster: ``tidelog registry``.

``state`` replays the topic's records; ``registering``, ``deleting``, ``settings`` and ``reading`` decide over it and return
records and answers. ``compatibility`` and ``formats`` say what may follow what in Avro, JSON Schema and Protobuf. ``rest`` has
the paths, as functions of a request. None of those does I/O; ``serving`` does: the topic through tidelog's client, HTTP through
uvicorn.
"""
