from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tidelog.config.resolve import BrokerConfig
from tidelog.server.upkeep.monitoring import Monitoring
from tidelog.server.upkeep.unmonitored import Unmonitored, monitoring_of


def node(listener: str) -> Any:
    return SimpleNamespace(config=BrokerConfig.from_properties({"tidelog.http.listener": listener}))


def test_a_node_is_monitored_where_it_has_a_listener_for_it() -> None:
    assert isinstance(monitoring_of(node("127.0.0.1:0")), Monitoring)
    monitoring = monitoring_of(node(""))
    assert isinstance(monitoring, Unmonitored)

    async def use() -> None:
        await monitoring.listen()
        monitoring.serve(lambda: 1 / 0, lambda: 1 / 0, [], lambda: None)  # type: ignore[arg-type, return-value]
        await monitoring.stop()

    asyncio.run(use())
    assert monitoring.address is None
