"""Avro: a schema's JSON as a tree of types, its canonical text, and the rules of schema resolution (Avro's specification,
1.12)."""
