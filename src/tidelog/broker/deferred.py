"""Handlers whose modules are imported at the first request of their API.

Most nodes are rarely or never asked for a delegation token, a client quota or a reassignment. If the table imported the modules
of such APIs, each start of a node and each import of ``tidelog.testing`` would pay for them in time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_APIS = "tidelog.broker.apis"


class DeferredFunction:
    """A function that is imported when it is called."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def load(self) -> Callable[..., Any]:
        """The function itself."""
        function: Callable[..., Any] = getattr(import_module(self._module), self._name)
        return function

    def __call__(self, *args: Any) -> Any:
        return self.load()(*args)


class DeferredModule:
    """Stands for a module in the table: each attribute is a function of the module, deferred."""

    __slots__ = ("_module",)

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> DeferredFunction:
        return DeferredFunction(self._module, name)


def deferred(room: str, *names: str) -> tuple[DeferredModule, ...]:
    """The modules ``names`` in the folder ``room`` of ``broker.apis``."""
    return tuple(DeferredModule(f"{_APIS}.{room}.{name}") for name in names)


def loaded(function: F) -> F:
    """The function itself, imported if it is deferred: a handler that is called often needs no step in between."""
    if isinstance(function, DeferredFunction):
        return function.load()  # type: ignore[return-value]
    return function
