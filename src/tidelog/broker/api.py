"""What one row of the API table says (the table itself is ``broker.apis``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidelog.broker.context import Handler
from tidelog.model.errors import KafkaError
from tidelog.protocol.api_keys import ApiKey

VersionRange = tuple[int, int]
"""First and last version, both included."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API as this broker serves it."""

    key: ApiKey
    versions: VersionRange
    """What is complete; any other version closes the connection."""
    handler: Handler
    advertised: VersionRange | None = None
    """What ApiVersions says, where that is not ``versions``; clients always take the highest version both sides know."""
    read: Callable[[memoryview, int, int], Any] | None = None
    """(frame, where its body begins, version) -> request, where the generated decoder is too slow; the same errors."""
    on_error: Callable[[Any, KafkaError], Any] | None = None
    """(request, error) -> the response that says so; without it a KafkaError of the handler closes the connection."""

    @property
    def told(self) -> VersionRange:
        """The range in ApiVersions."""
        return self.advertised or self.versions
