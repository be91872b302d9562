"""The string constants of Java class files and jars: the constant pool of JVMS 4.4, and nothing else of the class."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

MAGIC = 0xCAFEBABE
UTF8, LONG, DOUBLE, STRING = 1, 5, 6, 8
# Bytes after the tag, for all constants of a fixed size.
SIZES = {3: 4, 4: 4, LONG: 8, DOUBLE: 8, 7: 2, STRING: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


def string_constants(data: bytes) -> Iterator[str]:
    """The values of all CONSTANT_String entries, with the recipes of concatenations. Raises ValueError for other files."""
    if len(data) < 10 or struct.unpack_from(">I", data)[0] != MAGIC:
        raise ValueError("not a class file")
    count = struct.unpack_from(">H", data, 8)[0]
    position, index = 10, 1
    texts: dict[int, bytes] = {}
    strings: list[int] = []
    while index < count:
        tag = data[position]
        if tag == UTF8:
            length = struct.unpack_from(">H", data, position + 1)[0]
            texts[index] = data[position + 3 : position + 3 + length]
            position += 3 + length
        elif tag in SIZES:
            if tag == STRING:
                strings.append(struct.unpack_from(">H", data, position + 1)[0])
            position += 1 + SIZES[tag]
        else:
            raise ValueError(f"constant {index} has the unknown tag {tag}")
        index += 2 if tag in (LONG, DOUBLE) else 1
    for at in strings:
        yield texts[at].replace(b"\xc0\x80", b"\0").decode("utf-8", "replace")


def jar_strings(jar: Path) -> Iterator[str]:
    """The string constants of every class in a jar."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class"):
                yield from string_constants(archive.read(name))
