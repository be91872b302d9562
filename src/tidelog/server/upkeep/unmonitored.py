"""Whether a node is monitored. Without ``tidelog.http.listener`` no client can ask for metrics, and nothing of them is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import asyncio

    from tidelog.config.resolve import BrokerConfig
    from tidelog.metrics.registry import Registry
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.upkeep.monitoring import Monitoring
    from tidelog.storage.log_dir import LogDir

Sources: TypeAlias = "Callable[[], Registry]"
"""Makes the metrics of a node's own objects, from ``upkeep.node_metrics``."""


class Monitored(Protocol):
    """What monitoring needs from a node."""

    config: BrokerConfig
    runtime: LoopRuntime
    failed: asyncio.Event


class Unmonitored:
    """In place of ``Monitoring``."""

    address: tuple[str, int] | None = None

    async def listen(self) -> None: ...

    def serve(self, metrics: Sources, dirs: Sequence[LogDir], why_not_ready: Callable[[], str | None]) -> None: ...

    async def stop(self) -> None: ...


def monitoring_of(node: Monitored) -> Monitoring | Unmonitored:
    """The monitoring of a node that has not started."""
    if not node.config.tidelog_http_listener:
        return Unmonitored()
    from tidelog.server.upkeep.monitoring import Monitoring

    return Monitoring(node)
