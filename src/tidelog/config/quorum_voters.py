"""The voters of a fixed quorum, as ``controller.quorum.voters`` names them: ``id@host:port``, ids unique."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from tidelog.model.errors import ConfigError

_VOTER: Final = re.compile(r"(?P<id>[0-9]{1,10})@(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^\[\]:/]+)):(?P<port>[0-9]{1,5})")


class Voter(NamedTuple):
    """A controller of a fixed quorum, from ``controller.quorum.voters``."""

    id: int
    host: str
    port: int


def parse_voters(option: str, items: Iterable[str]) -> tuple[Voter, ...]:
    """The voters of a fixed quorum, ids unique."""
    result: list[Voter] = []
    for item in items:
        found = _VOTER.fullmatch(item)
        if found is None or int(found["port"]) > 65535:
            raise ConfigError(f"{option} holds {item!r}, but must hold id@host:port.")
        result.append(Voter(int(found["id"]), found["ipv6"] or found["host"], int(found["port"])))
    if len({voter.id for voter in result}) != len(result):
        raise ConfigError(f"{option} names a voter twice: {', '.join(str(voter.id) for voter in result)}.")
    return tuple(result)
