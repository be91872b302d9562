"""What the connections of a controller share, where the process is a controller and no broker.

Its handlers see it as ``ctx.broker``; those in ``broker.controller_apis`` touch only what is here: a controller has no
partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.model.ports import Rng

if TYPE_CHECKING:
    from tidelog.broker.api import Route
    from tidelog.broker.context import Controller, Runtime
    from tidelog.config.resolve import BrokerConfig
    from tidelog.metadata.image import ClusterImage
    from tidelog.raft.voters import VoterSet


class Quorum(Protocol):
    """This node's replica of the metadata quorum."""

    @property
    def voters(self) -> VoterSet:
        """Who votes, as far as this replica knows."""
        ...

    @property
    def leader_id(self) -> int:
        """-1 while it is not known."""
        ...

    async def ask(self, api_key: int, version: int, listener: str, request: Any) -> Any:
        """The answer to another node's request, when there is one. KafkaError when this replica has stopped."""
        ...


class Images(Protocol):
    """Where the committed image is found."""

    @property
    def image(self) -> ClusterImage: ...


class Lives:
    """What heartbeats and their connections say of brokers; here it is of no interest."""

    def heard(self, broker_id: int) -> None:
        """A heartbeat was taken."""

    def hung_up(self, broker_id: int, epoch: int) -> None:
        """A connection was closed on which this broker had told that it lives."""


@dataclass(slots=True)
class ControllerSide:
    """See the module."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    images: Images
    controller: Controller
    quorum: Quorum
    runtime: Runtime
    rng: Rng
    apis: Mapping[int, Route]
    lives: Lives = field(default_factory=Lives)
    quotas: ClientQuotas = field(default_factory=ClientQuotas)

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node has read."""
        return self.images.image
