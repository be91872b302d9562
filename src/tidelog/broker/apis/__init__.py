"""The one list of what a broker serves. ApiVersions, the reference page and the dispatcher are computed from it.

A row names an API, the versions that are complete, its handler, and, where it differs, the range that clients are told.
To add an API: definition, handler, row, test, changelog fragment.
"""

from __future__ import annotations

from tidelog.broker.api import Api

API_TABLE: tuple[Api, ...] = ()

APIS: dict[int, Api] = {row.key: row for row in API_TABLE}
"""The rows by their number on the wire."""
