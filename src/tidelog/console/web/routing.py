"""Routes: what a request needs to be allowed, what it may carry, and which function answers it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from tidelog.console.access.rights import About, Right
from tidelog.console.web.problems import Problem
from tidelog.console.web.values import Param

if TYPE_CHECKING:
    from tidelog.console.web.context import Context

Handler = Callable[["Context"], Awaitable[Any]]
"""Returns the data of the answer, an ``Answer``, or a whole response."""


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path. ``path`` has ``{name}`` segments. ``right`` None: anybody, logged in or not.

    ``about`` with ``name``: the right is asked for that topic or group, named by a path segment, a query parameter or a field of
    the body. ``about`` None: on anything of the cluster; the handler leaves out each name that the user may not see.
    """

    method: str
    path: str
    handler: Handler
    right: Right | None
    about: About | None = None
    name: str | None = None
    query: Mapping[str, Param] = field(default_factory=dict)
    body: Mapping[str, Param] = field(default_factory=dict)
    largest_body: int = 65_536
    from_elsewhere: bool = False
    """Another site sends browsers here. The handler checks that the browser is the one that it was given."""


class Routes:
    """A table of routes; paths are matched as they were sent, so that ``%2F`` is part of a segment."""

    def __init__(self, table: Iterable[Route]) -> None:
        self.table = tuple(table)
        self._patterns = [(re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", each.path)), each) for each in self.table]

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """The route and the decoded segments. Problem: 404, or 405 where another method is there."""
        allowed = []
        for pattern, route in self._patterns:
            match = pattern.fullmatch(raw_path)
            if match is None:
                continue
            if route.method == method:
                return route, {name: _decoded(value) for name, value in match.groupdict().items()}
            allowed.append(route.method)
        if allowed:
            raise Problem(405, f"this path takes {', '.join(sorted(set(allowed)))}")
        raise Problem(404, "there is no such path in the API")


def _decoded(segment: str) -> str:
    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise Problem(400, "the path is not UTF-8") from None
