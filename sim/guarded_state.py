"""What each process of a simulated node allows its guarded client, by the metadata that it has read, and since when.

A node promises that a change of ACLs or credentials counts from its next decision once it has read the change. So what a process
has known since before a request was sent decides the request, whatever the leaders and the controllers do meanwhile.
"""

from __future__ import annotations

import base64
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sim.security_ledger import may
from tidelog.metadata.image import ClusterImage
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.security.scram import ScramMechanism
from tidelog.server.cluster import metadata_replica
from tidelog.testing.simulation.patching import Patch, patched

USER = "rex"
TOPICS = ("guarded-a", "guarded-b")
"""One ACL covers both."""
READ, WRITE, LOGIN = "read", "write", "log in"


def permitted(image: ClusterImage) -> dict[str, bool]:
    """What the guarded user may do, by this image."""
    acls = image.acls.values()
    rights = {READ: AclOperation.READ, WRITE: AclOperation.WRITE}
    found = {name: may(acls, f"User:{USER}", "", operation, ResourceType.TOPIC, TOPICS[0]) for name, operation in rights.items()}
    return {**found, LOGIN: (USER, ScramMechanism.SHA_256) in image.scram}


@dataclass
class Process:
    """One process of a node."""

    allowed: dict[str, bool] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    """When ``allowed`` became what it is, in virtual seconds."""

    def read(self, image: ClusterImage, now: float) -> None:
        """It has read the metadata up to this image."""
        for what, allowed in permitted(image).items():
            if self.allowed.get(what) is not allowed:
                self.allowed[what], self.since[what] = allowed, now


class GuardedState:
    """See the module. ``written``: when each value for the guarded topics was first sent."""

    def __init__(self) -> None:
        self.written: dict[bytes, float] = {}
        self._processes: dict[int, Process] = {}

    def decides(self, node_id: int, what: str, sent: float) -> bool | None:
        """How the node has to decide a request that was sent then and is answered now; None when either is in order.

        Its process at the moment has known the same since before the request was sent: so no former process has received it.
        """
        process = self._processes.get(node_id)
        if process is None or process.since[what] >= sent:
            return None
        return process.allowed[what]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Follows the metadata of each process that starts meanwhile, in the turn in which it is read.

        Nonces and secrets come from a generator: a seed has to give the same run again.
        """
        rng = random.Random(0)
        honest = metadata_replica.access_control

        def access_control(config: Any, member: Any, runtime: Any, *more: Any) -> Any:
            access = honest(config, member, runtime, *more)
            process = self._processes[config.node_id] = Process()
            agenda = runtime.loop.agenda
            process.read(member.image, agenda.now)

            def follow(old: ClusterImage, new: ClusterImage, _delta: object) -> None:
                if old.acls is not new.acls or old.scram is not new.scram:
                    process.read(new, agenda.now)

            member.committed.listeners.insert(0, follow)
            return access

        tokens: list[Patch] = [
            (secrets, "token_bytes", lambda count=32: rng.randbytes(count)),
            (secrets, "token_urlsafe", lambda count=32: base64.urlsafe_b64encode(rng.randbytes(count)).rstrip(b"=").decode()),
        ]
        with patched([(metadata_replica, "access_control", access_control), *tokens]):
            yield
