"""Security in the simulated controller: ACLs and SCRAM credentials change while controllers and brokers come and go.

Each process of a broker keeps an image of its own. It begins with a snapshot, reads several groups of records at once, or gets
another snapshot later. After each step its ACLs, its credentials, its decisions and the logins at it have to be what the records
up to there say (``security_ledger``): so brokers that have caught up decide alike, and no decision mixes two versions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim.controller_acls import Acls, new_access
from sim.controller_checkers import require
from sim.controller_scram import Credentials
from sim.security_ledger import Credential, Ledger
from tidelog.broker.access_control import AclAccessControl
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.snapshot import snapshot_records

if TYPE_CHECKING:
    from sim.controller_brokers import SimBroker
    from sim.controller_world import World


@dataclass
class Node:
    """One process of a broker."""

    image: ClusterImage
    access: AclAccessControl = field(default_factory=new_access)
    ledger: Ledger = field(default_factory=Ledger)


class Security:
    """See the module."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(f"acls {seed}")
        self._acls = Acls(world, self._rng)
        self._credentials = Credentials(world, seed)
        self._nodes: dict[int, Node] = {}

    def change(self) -> None:
        """Administrators may change something."""
        self._acls.change()
        self._credentials.change()

    def restarted(self, broker: SimBroker) -> None:
        """Its next image is a snapshot."""
        self._nodes.pop(broker.id, None)

    def followed(self, broker: SimBroker, image: ClusterImage) -> None:
        """The broker has read the log up to the end of this image."""
        where = f"broker {broker.id}"
        node = self._read(broker.id, image)
        check_known(where, node.image, node.ledger)
        require(node.access.acls == len(node.ledger.acls), f"{where} counts {node.access.acls} ACLs")
        self._acls.look(where, node.access, node.ledger)
        self._credentials.look(where, node.image, node.ledger)

    def _read(self, broker_id: int, image: ClusterImage) -> Node:
        node = self._nodes.get(broker_id)
        if node is None:
            loaded = restored(image)
            node = self._nodes[broker_id] = Node(loaded)
            node.access.follow(loaded, loaded, None)
            node.ledger.read(self._records(-1, image.offset))
            return node
        before, news = node.image, self._records(node.image.offset, image.offset)
        if self._rng.random() < 0.1:
            self._world.counts["ACLs of a snapshot"] += 1
            node.image = restored(image)
            node.access.follow(before, node.image, None)
        else:
            delta = ClusterDelta(before)
            for record in news:
                delta.replay(record)
            node.image = delta.apply(image.offset, image.epoch, image.timestamp_ms)
            node.access.follow(before, node.image, delta)
        node.ledger.read(news)
        return node

    def _records(self, after: int, upto: int) -> list[Any]:
        return [record for records, last in self._world.written if after < last <= upto for record in records]

    def check_agreement(self) -> None:
        """All have caught up: each decides as the records say, so all decide alike, and so does a new controller."""
        world = self._world
        for broker in world.brokers.values():
            self.followed(broker, world.image)
            node = self._nodes[broker.id]
            self._acls.ask_everything(f"broker {broker.id}", node.access, node.ledger)
        controller = Node(world.image)
        controller.access.follow(world.image, world.image, None)
        controller.ledger.read(self._records(-1, world.image.offset))
        check_known("the controller", controller.image, controller.ledger)
        self._acls.ask_everything("the controller", controller.access, controller.ledger)
        self._credentials.try_everything("the controller", controller.image, controller.ledger)


def restored(image: ClusterImage) -> ClusterImage:
    """What a node makes of a snapshot of this image."""
    delta = ClusterDelta(ClusterImage(cluster_id=image.cluster_id))
    for record in snapshot_records(image):
        delta.replay(record)
    return delta.apply(image.offset, image.epoch, image.timestamp_ms)


def check_known(where: str, image: ClusterImage, ledger: Ledger) -> None:
    """The ACLs and credentials of an image are those of the records."""
    require(dict(image.acls) == ledger.acls, f"{where} has {len(image.acls)} ACLs, the records have {len(ledger.acls)}")
    known = {user: Credential(bytes(each.salt), bytes(each.stored_key)) for user, each in image.scram.items()}
    require(known == ledger.credentials, f"{where} has other credentials than the records: {sorted(known)}")
