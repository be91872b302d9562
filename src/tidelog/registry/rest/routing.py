"""Which handler serves a path. Paths are matched as they came, because subjects hold ``/`` and ``%``; then each part is decoded.

All paths may follow ``/contexts/:.name:``; subjects in them are then those of that context, unless they name one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from tidelog.registry import errors
from tidelog.registry.model import DEFAULT_CONTEXT, qualified
from tidelog.registry.outcome import Outcome
from tidelog.registry.reading import context_in
from tidelog.registry.rest.requests import Request

Serve = Callable[..., Outcome]
_PARSED = frozenset({"format", "findTags"})
"""Parameters for which a schema is parsed that is only read."""
_CONTEXT = re.compile(r"/contexts/([^/]+)(/.*)")


@dataclass(frozen=True, slots=True)
class Route:
    """``serve`` gets the request and the parts of the path in braces. ``heavy``: it parses schemas, so it may take a while.

    ``writes``: it changes what is registered, so only users who may write are let in, and others' writes wait.
    """

    method: str
    path: str
    serve: Serve
    heavy: bool = False
    writes: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The path as an expression; an id is a number."""
        return re.compile(re.sub(r"\{(\w+)\}", _part, self.path))


def _part(match: re.Match[str]) -> str:
    return rf"(?P<{match[1]}>{'[0-9]{1,10}' if match[1] == 'id' else '[^/]+'})"


@dataclass(frozen=True, slots=True)
class Call:
    """A request with what serves it."""

    route: Route
    request: Request
    arguments: tuple[str, ...]

    @property
    def heavy(self) -> bool:
        """Whether it parses schemas. What only reads does, if it asks for a form of them."""
        return self.route.heavy and (self.route.method != "GET" or not _PARSED.isdisjoint(self.request.query))

    def answer(self) -> Outcome:
        """Serve it. RegistryError."""
        return self.route.serve(self.request, *self.arguments)


class Routes:
    """``find`` raises RegistryError (404, 405)."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = [(route.pattern, route) for route in routes]

    @property
    def all(self) -> list[Route]:
        """The table, for walks through all routes."""
        return [route for _, route in self._routes]

    def find(self, request: Request) -> Call:
        """The call of a request."""
        path = request.path.rstrip("/") or "/"
        found = self._match(path)
        context = DEFAULT_CONTEXT
        if not found and (inner := _CONTEXT.fullmatch(path)) is not None:
            context, found = context_in(unquote(inner[1])), self._match(inner[2])
        method = "GET" if request.method == "HEAD" else request.method
        for route, match in found:
            if route.method == method:
                parts = tuple(_argument(name, text, context) for name, text in match.groupdict().items())
                return Call(route, replace(request, context=context), parts)
        if found:
            raise errors.RegistryError(405, 405, f"{request.method} is not served at {path}.")
        raise errors.no_such_path(path)

    def _match(self, path: str) -> list[tuple[Route, re.Match[str]]]:
        return [(route, match) for pattern, route in self._routes if (match := pattern.fullmatch(path)) is not None]


def _argument(name: str, text: str, context: str) -> Any:
    text = unquote(text)
    return qualified(context, text) if name == "subject" else text
