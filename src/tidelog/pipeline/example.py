"""The pipeline that ``tidelog pipeline init`` writes: it runs as it is, and shows the options."""

from __future__ import annotations


def example(topic: str, bootstrap: str) -> str:
    """YAML for one topic into a Delta table."""
    name = "".join(letter if letter.isalnum() else "_" for letter in topic)
    name = name if name[:1].isalpha() else f"t_{name}"
    return f"""\
# Topics into tables, each record once. All keys: docs/guide/pipeline.md
pipeline: {name}
kafka:
  bootstrap.servers: {bootstrap}
checkpoint: lake/checkpoints/{name}

sources:
  {name}:
    topics: [{topic}]
    start: earliest
    key: text
    value: text
    # Records of a schema, with those that do not fit kept aside:
    # value: {{format: json, schema: "id string not null, amount double"}}

transforms:
  {name}_clean:
    from: {name}
    sql: SELECT _key AS key, value, _timestamp AS at, _partition, _offset FROM {name}
    expect:
      has_value: {{check: value IS NOT NULL, otherwise: drop}}

sinks:
  {name}_table:
    type: delta
    from: {name}_clean
    path: lake/{name}

dead_letters:
  type: delta
  path: lake/{name}_dead_letters
"""
