"""Protobuf: ``.proto`` files and descriptors, which are two forms of one schema.

Java's clients register the text of a ``.proto`` file, Python's the base64 of a FileDescriptorProto. Both become a descriptor
(``parsing``, ``resolving``), which ``printing`` writes as the canonical text, so that both have one id. A descriptor that the
text cannot hold, because it has custom options, stays base64. Comments are not kept.
"""
