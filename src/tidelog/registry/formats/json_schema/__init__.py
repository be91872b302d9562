"""JSON Schema, drafts 4 to 2020-12: ``documents`` resolves references, ``comparing`` asks whether one schema accepts all that
another does.

The question is answered by rules that are sound but not complete: where they find no reason why everything that the writer's
schema accepts is accepted by the reader's, the schemas are incompatible. Two answers are kinder than that, as in Confluent's
registry: a new required property with a default, and ``oneOf``, whose branches are matched without asking whether they overlap.
"""
