"""Configs and modes. All errors are RegistryError."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.registry import settings
from tidelog.registry.model import qualified
from tidelog.registry.outcome import Outcome
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.routing import Route
from tidelog.registry.state import State


class SettingsRoutes:
    """Without a subject in the path the setting is that of the path's context."""

    def __init__(self, state: State, default_level: str) -> None:
        self._state, self._default_level = state, default_level

    def routes(self) -> list[Route]:
        """The table."""
        table: list[tuple[str, str, Callable[[Request, str], Outcome]]] = [
            ("GET", "config", self.get_config),
            ("PUT", "config", self.put_config),
            ("DELETE", "config", self.delete_config),
            ("GET", "mode", self.get_mode),
            ("PUT", "mode", self.put_mode),
            ("DELETE", "mode", self.delete_mode),
        ]
        return [
            Route(method, path, _with_subject(serve), writes=method != "GET")
            for method, name, serve in table
            for path in (f"/{name}", f"/{name}/{{subject}}")
        ]

    def get_config(self, request: Request, subject: str) -> Outcome:
        return settings.get_config(
            self._state, subject, default_to_global=request.flag("defaultToGlobal"), default_level=self._default_level
        )

    def put_config(self, request: Request, subject: str) -> Outcome:
        return settings.put_config(self._state, subject, request.object(settings.CONFIG_FIELDS))

    def delete_config(self, request: Request, subject: str) -> Outcome:
        return settings.delete_config(self._state, subject, self._default_level)

    def get_mode(self, request: Request, subject: str) -> Outcome:
        return settings.get_mode(self._state, subject, default_to_global=request.flag("defaultToGlobal"))

    def put_mode(self, request: Request, subject: str) -> Outcome:
        return settings.put_mode(
            self._state, subject, request.object(frozenset({"mode"})).get("mode"), force=request.flag("force")
        )

    def delete_mode(self, request: Request, subject: str) -> Outcome:
        return settings.delete_mode(self._state, subject, recursive=request.flag("recursive"))


def _with_subject(serve: Callable[[Request, str], Outcome]) -> Callable[..., Outcome]:
    def of_context(request: Request, subject: str | None = None) -> Outcome:
        return serve(request, qualified(request.context, "") if subject is None else subject)

    return of_context
