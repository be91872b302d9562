"""``tidelog cluster N --console``: refuses what cannot work before the cluster is made or started."""

from __future__ import annotations

from tidelog.cli import console_process
from tidelog.cli.cluster.local_layout import HOST, load


def check(listen: str, directory: str, port: int, secure: bool) -> None:
    """ConfigError when there can be no console: see ``console_process.check``; or when clients of the cluster need a login.
    ``port``: of the first node of a new cluster."""
    console_process.check(listen)
    cluster = load(directory)
    if cluster is not None and cluster.client_file is not None:
        raise console_process.locked(cluster.bootstrap, listen, cluster.client_file)
    if secure:
        raise console_process.locked(f"{HOST}:{port}", listen)
