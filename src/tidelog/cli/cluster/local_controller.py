"""Finds the active controller of a local cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.cli.cluster.local_layout import LocalCluster


def active_controller(cluster: LocalCluster) -> int | None:
    """Its node id; None when no node knows it."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.refusal import CannotConnect, CommandFailed
    from tidelog.cli.tools.metadata_quorum import quorum

    try:
        with AdminSession(cluster.bootstrap, cluster.client_file) as session:
            leader: int = quorum(session)[0].leader_id
            return leader
    except (CannotConnect, CommandFailed):
        return None
