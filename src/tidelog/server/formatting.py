"""Formatting what was never formatted: the log dirs of an embedded node, at its first start.

A node whose ``process.roles`` are set is formatted by a person (``tidelog format``), so that nobody begins a second cluster by
a mistyped path. The embedded default begins one where it finds nothing at all; next to a formatted directory, an unformatted
one is taken in by ``LogManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.checkpoints import META_PROPERTIES, MetaProperties, replace_file

log = logging.getLogger(__name__)


def format_embedded(fs: FileSystem, config: BrokerConfig, dirs: Sequence[str], rng: Rng) -> None:
    """A new cluster of one, unless one of ``dirs`` belongs to a cluster already. StorageFailure when they cannot be written."""
    if any(fs.exists(f"{path}/{META_PROPERTIES}") for path in dirs):
        return
    cluster_id = uuid_to_text(random_uuid(rng))
    for path in dirs:
        try:
            fs.make_dirs(path)
            meta = MetaProperties(cluster_id, config.node_id, random_uuid(rng))
            replace_file(fs, f"{path}/{META_PROPERTIES}", meta.encode())
        except OSError as problem:
            raise StorageFailure(path, f"cannot be formatted: {problem}") from problem
    log.info("formatted %s for a new cluster, %s", ", ".join(dirs), cluster_id)
