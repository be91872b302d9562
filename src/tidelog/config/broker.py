"""All broker options in one table, in the order of their names."""

from __future__ import annotations

from typing import Final

from tidelog.config import (
    broker_groups,
    broker_log,
    broker_network,
    broker_quorum,
    broker_remote_log,
    broker_replication,
    broker_security,
    broker_transactions,
    tidelog_options,
)
from tidelog.config.options import Option, table

KAFKA_BROKER_OPTIONS: Final[dict[str, Option]] = table(
    broker_network.OPTIONS,
    broker_log.OPTIONS,
    broker_quorum.OPTIONS,
    broker_replication.OPTIONS,
    broker_remote_log.OPTIONS,
    broker_groups.OPTIONS,
    broker_transactions.OPTIONS,
    broker_security.OPTIONS,
)
"""The options that Apache Kafka 4.3 has."""

BROKER_OPTIONS: Final[dict[str, Option]] = table(tuple(KAFKA_BROKER_OPTIONS.values()), tidelog_options.OPTIONS)
"""Those and tidelog's own."""
