"""Collects what a handler of the group coordinator does before it becomes an Outcome."""

from __future__ import annotations

from typing import Any

from tidelog.model.machine import NOTHING, Outcome, Reply, Token


class Effects:
    """Records to append, and the requests and responses that wait for them, in order."""

    __slots__ = ("records", "replies", "sends")

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.replies: list[Reply] = []
        self.sends: list[Any] = []

    def reply(self, token: Token, response: Any) -> None:
        """Answers a waiting request once the records are safe."""
        self.replies.append(Reply(token, response))

    def drop_all(self) -> None:
        """The request is refused: drops everything collected."""
        self.records.clear()
        self.replies.clear()
        self.sends.clear()

    def outcome(self) -> Outcome:
        """Returns everything as an Outcome."""
        if not self.records and not self.replies and not self.sends:
            return NOTHING
        return Outcome(records=tuple(self.records), sends=tuple(self.sends), replies=tuple(self.replies))
