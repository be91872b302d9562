"""Every route of the console's API, in one table. ``tests/unit/console/web/test_table.py`` walks it without rights."""

from __future__ import annotations

from typing import Final

from tidelog.console.web import (
    cluster_pages,
    dead_letter_pages,
    group_changes,
    group_pages,
    move_pages,
    oidc_pages,
    record_pages,
    security_pages,
    session_pages,
    topic_changes,
    topic_pages,
)
from tidelog.console.web.routing import Routes

TABLE: Final = (
    *session_pages.ROUTES,
    *oidc_pages.ROUTES,
    *cluster_pages.ROUTES,
    *move_pages.ROUTES,
    *topic_pages.ROUTES,
    *topic_changes.ROUTES,
    *record_pages.ROUTES,
    *group_pages.ROUTES,
    *group_changes.ROUTES,
    *dead_letter_pages.ROUTES,
    *security_pages.ROUTES,
)


def routes() -> Routes:
    """The table, ready to be searched."""
    return Routes(TABLE)
