"""Calls to the API, without HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.testing.schema_registry.errors import RegistryError
from tidelog.testing.schema_registry.requests import Request
from tidelog.testing.schema_registry.rest import Api
from tidelog.testing.schema_registry.store import Store

INT, STRING = {"schema": '"int"'}, {"schema": '"string"'}


class Caller:
    def __init__(self) -> None:
        self.api = Api(Store())

    def __call__(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        return self.api.answer(Request(method, path, query, body))

    def code(self, *args: Any, **query: str) -> int:
        with pytest.raises(RegistryError) as caught:
            self(*args, **query)
        return caught.value.code
