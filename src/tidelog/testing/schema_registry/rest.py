"""Confluent's REST API over a ``Store``: finds the resource that serves a request.

A request goes in as method, path, query and parsed body, and the response comes out as JSON values; there is no HTTP here. All
paths may follow ``/contexts/:.name:``; subjects in them are then those of that context.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.requests import Request
from tidelog.testing.schema_registry.resources import About, Compatibility, Configs, Modes, Schemas, Subjects
from tidelog.testing.schema_registry.settings import DEFAULT_CONTEXT
from tidelog.testing.schema_registry.store import Store


class Api:
    """``answer`` raises RegistryError."""

    def __init__(self, store: Store) -> None:
        resources = About(), Subjects(store), Schemas(store), Compatibility(store), Configs(store.settings), Modes(store)
        self._routes = [route for each in resources for route in each.routes()]

    def answer(self, request: Request) -> Any:
        """The response for the path: a value that becomes JSON, or bytes for a schema as it is."""
        context, path = request.split_context()
        found = [(route, match) for route in self._routes if (match := route.pattern.fullmatch(path)) is not None]
        for route, match in found:
            if route.method == request.method:
                parts = match.groupdict().items()
                return route.serve(request, *(_argument(name, text, context) for name, text in parts))
        if found:
            raise errors.RegistryError(405, 405, f"{request.method} is not served at {path}.")
        raise errors.not_found(path)


def _argument(name: str, text: str, context: str) -> str:
    text = unquote(text)
    qualified = name != "subject" or context == DEFAULT_CONTEXT or text.startswith(":.")
    return text if qualified else f":{context}:{text}"
