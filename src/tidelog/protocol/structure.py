"""The base of all generated messages: values with slots that read and write themselves at any version.

A peer's bytes can cause only ``ProtocolViolation``; a value of ours that does not fit causes ``ValueError``. Versions are checked
only for the outermost message.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Self

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer
from tidelog.protocol.primitives import BROKEN

HIDDEN = "[hidden]"
"""In place of a secret value."""
DEFAULT: Any = object()
"""Placeholder for a new empty list or structure in the signature of a generated constructor."""


def broken(name: str, version: int, buf: Buffer, error: Exception) -> ProtocolViolation:
    """The exception for one of ``BROKEN``."""
    if isinstance(error, UnicodeDecodeError):
        return ProtocolViolation(f"{name} version {version} has a string that is not UTF-8: {error.reason}")
    return ProtocolViolation(f"{name} version {version} is cut off: {len(buf)} bytes are not all of it")


class Structure:
    """Base of every generated class: a mutable value with slots. Equality and repr use its fields; repr hides secret ones."""

    __slots__: tuple[str, ...] = ()
    SECRET: ClassVar[tuple[str, ...]] = ()
    """Fields that ``repr`` does not show; the definitions name them."""
    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _read(cls, buf: Buffer, pos: int, version: int) -> tuple[Self, int]:
        raise AssertionError("generated")

    def _write(self, out: bytearray, version: int) -> None:
        raise AssertionError("generated")

    @classmethod
    def decode_from(cls, buf: Buffer, pos: int, version: int) -> tuple[Self, int]:
        """The structure at ``pos`` and the position after it. ProtocolViolation when the bytes are malformed."""
        try:
            return cls._read(buf, pos, version)
        except BROKEN as error:
            raise broken(cls.__name__, version, buf, error) from None

    def encode_into(self, out: bytearray, version: int) -> None:
        """Appends the bytes. ValueError when a value does not fit its field or the version."""
        try:
            self._write(out, version)
        except struct.error as error:
            raise ValueError(
                f"{type(self).__name__} version {version}: a number or length does not fit its field: {error}"
            ) from error

    def replace(self, **changes: Any) -> Self:
        """A shallow copy with some fields changed."""
        return type(self)(**({name: getattr(self, name) for name in self.__slots__} | changes))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        secret = self.SECRET
        shown = (f"{name}={HIDDEN if name in secret else repr(getattr(self, name))}" for name in self.__slots__)
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Structure):
    """Base of the generated top-level classes: requests, responses, headers, records."""

    __slots__: tuple[str, ...] = ()

    NAME: ClassVar[str]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]
    """First flexible version; 32767 when there is none."""

    @classmethod
    def decode_from(cls, buf: Buffer, pos: int, version: int) -> tuple[Self, int]:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise ProtocolViolation(f"{cls.NAME} has no version {version}, only {cls.MIN_VERSION} to {cls.MAX_VERSION}")
        return super().decode_from(buf, pos, version)

    @classmethod
    def decode(cls, buf: Buffer, version: int) -> Self:
        """Decodes the whole buffer as one message. ProtocolViolation when it is malformed or has trailing bytes."""
        message, pos = cls.decode_from(buf, 0, version)
        if pos != len(buf):
            raise ProtocolViolation(f"{cls.NAME} version {version} ends at byte {pos}, but {len(buf)} bytes came")
        return message

    @classmethod
    def read(cls, buf: Buffer, pos: int, version: int) -> Self:
        """The message at ``pos``; trailing bytes are ignored, as Kafka does with requests (librdkafka sends some).

        ProtocolViolation when it is malformed.
        """
        return cls.decode_from(buf, pos, version)[0]

    def encode_into(self, out: bytearray, version: int) -> None:
        if not self.MIN_VERSION <= version <= self.MAX_VERSION:
            raise ValueError(f"{self.NAME} has no version {version}, only {self.MIN_VERSION} to {self.MAX_VERSION}")
        super().encode_into(out, version)

    def encode(self, version: int) -> bytes:
        """The bytes. ValueError when a value does not fit its field or the version."""
        out = bytearray()
        self.encode_into(out, version)
        return bytes(out)
