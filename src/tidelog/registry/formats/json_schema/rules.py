"""What rules for one kind of value ask of the comparison: inner schemas."""

from __future__ import annotations

from typing import Protocol

from tidelog.registry.formats import Difference
from tidelog.registry.formats.json_schema.documents import Node


class Rules(Protocol):
    """``lenient``: by the policy LENIENT."""

    @property
    def lenient(self) -> bool: ...

    def spend(self, steps: int) -> None:
        """Count steps, of which there is a bound: what a comparison does besides calling ``refused``."""

    def refused(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        """What the reader refuses of what the writer accepts."""

    def accepts(self, reader: Node, writer: Node) -> bool:
        """Whether the reader accepts all that the writer does."""
