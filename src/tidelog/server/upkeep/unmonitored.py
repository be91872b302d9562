"""Whether a node is monitored. Without ``tidelog.http.listener`` no client can ask for metrics, and nothing of them is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.server.installation import Place
    from tidelog.server.upkeep.monitoring import MakesFacts, Monitored, Monitoring, Sources
    from tidelog.storage.log_dir import LogDir


class Unmonitored:
    """In place of ``Monitoring``."""

    address: tuple[str, int] | None = None

    def join(self, place: Place) -> None: ...

    async def listen(self) -> None: ...

    def serve(
        self, metrics: Sources, facts: MakesFacts, dirs: Sequence[LogDir], why_not_ready: Callable[[], str | None]
    ) -> None: ...

    async def stop(self) -> None: ...


def monitoring_of(node: Monitored) -> Monitoring | Unmonitored:
    """The monitoring of a node that has not started."""
    if not node.config.tidelog_http_listener:
        return Unmonitored()
    from tidelog.server.upkeep.monitoring import Monitoring

    return Monitoring(node)
