"""The whole API over one state: ``find`` a request's call, ``answer`` it, and apply what it writes."""

from __future__ import annotations

from tidelog.registry.library import Library
from tidelog.registry.registering import Registering, Rules
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.routing import Call, Route, Routes
from tidelog.registry.rest.schemas import About, Schemas
from tidelog.registry.rest.settings_routes import SettingsRoutes
from tidelog.registry.rest.subjects import Parts, Subjects
from tidelog.registry.state import State


class Api:
    """Methods raise RegistryError."""

    def __init__(self, state: State, rules: Rules, about: About) -> None:
        library = Library(state, rules.max_schema_bytes)
        parts = Parts(state, library, Registering(state, library, rules))
        resources = about, Subjects(parts), Schemas(parts), SettingsRoutes(state, rules.default_level)
        self._state = state
        self._routes = Routes(route for each in resources for route in each.routes())

    @property
    def routes(self) -> list[Route]:
        """The table of routes."""
        return self._routes.all

    def find(self, request: Request) -> Call:
        """What serves a request. 404, 405."""
        return self._routes.find(request)

    def at_once(self, request: Request) -> object:
        """Answer a request, and apply what it writes to the state: for a registry in memory. The state keeps what a topic
        would."""
        outcome = self.find(request).answer()
        for key, value in outcome.records:
            self._state.replay(key, value)
        return outcome.value
