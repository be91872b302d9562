"""The cost of authorization: a question per resource by a handler, cached and not, and a change of the ACLs.

    python -m bench.authorization [ACLS]

Method: one process, no sockets; CPU time, since other processes of the machine only add to the clock. ACLs (10,000 unless
given) on as many topics, for 100 principals, a tenth of them prefixed, one in fifty a DENY. A question is what a handler asks
(``broker.authorization.allows``) with a request's context and the node's access control, so counting and the check of the log
level are in it. "Cached": 1,000 different questions over and over; the best of five rounds of 200,000. "First": each of
20,000 different questions once, which is what every resource costs once after a change. "Change": one ACL is added, or
removed, as a committed record: the delta, the new image, the index, and the cache that is emptied.
"""

from __future__ import annotations

import logging
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tidelog.broker.access_control import AclAccessControl
from tidelog.broker.authorization import allows
from tidelog.broker.request import RequestContext, Session
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.snapshot import acl_record
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.ids import random_uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from tidelog.security.authorizer import Authorizer
from tidelog.security.principal import KafkaPrincipal
from tidelog.server.serving.authorizer_log import NAME, AuthorizerLog

PRINCIPALS = 100
ROUNDS, QUESTIONS, FIRST, CHANGES = 5, 200_000, 20_000, 200


class Guarded:
    """A node's ACLs and the handlers' way to them."""

    def __init__(self, acls: int) -> None:
        self.rng = random.Random(1)
        self.image = ClusterImage(cluster_id="bench")
        self.access = AclAccessControl(Authorizer(), AuthorizerLog(lambda: 0), lambda: True)
        self.entries = [self._entry(number) for number in range(acls)]
        self.commit([acl_record(random_uuid(self.rng), entry) for entry in self.entries])
        node: Any = SimpleNamespace(access=self.access)
        self.clients: list[RequestContext[Any]] = [
            RequestContext(node, Session("PLAINTEXT", "10.0.0.1", KafkaPrincipal("User", f"u{each}")), ApiKey.FETCH, 18)
            for each in range(PRINCIPALS)
        ]

    def _entry(self, number: int) -> AccessControlEntry:
        rng = self.rng
        prefixed = rng.random() < 0.1
        return AccessControlEntry(
            ResourceType.TOPIC,
            f"team-{number % 97}." if prefixed else f"team-{number % 97}.topic-{number}",
            PatternType.PREFIXED if prefixed else PatternType.LITERAL,
            f"User:u{rng.randrange(PRINCIPALS)}",
            "*",
            rng.choice((AclOperation.READ, AclOperation.WRITE, AclOperation.ALL)),
            PermissionType.DENY if rng.random() < 0.02 else PermissionType.ALLOW,
        )

    def commit(self, records: list[Any]) -> None:
        """One committed group of records, up to the access control."""
        delta = ClusterDelta(self.image)
        for record in records:
            delta.replay(record)
        old, self.image = self.image, delta.apply(self.image.offset + len(records), 1, 0)
        self.access.follow(old, self.image, delta)

    def question(self) -> tuple[RequestContext[Any], str]:
        """A topic with an ACL, half of the time by the principal in it."""
        entry = self.rng.choice(self.entries)
        own = int(entry.principal.removeprefix("User:u"))
        return self.clients[own if self.rng.random() < 0.5 else self.rng.randrange(PRINCIPALS)], entry.resource_name + "x" * (
            entry.pattern_type == PatternType.PREFIXED
        )


def timed(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


@dataclass(frozen=True, slots=True)
class Figures:
    """CPU microseconds: of a cached question, of a first one, of a change that adds or removes an ACL."""

    acls: int
    questions: int
    allowed: int
    cached: float
    first: float
    adding: float
    removing: float

    def lines(self) -> list[str]:
        """In words."""
        return [
            f"Authorization with {self.acls:,} ACLs: {self.cached:.2f} us a resource once its decision is cached, "
            f"{self.first:.2f} us the first time.",
            f"A change of the ACLs: {self.adding:.0f} us to add one, {self.removing:.0f} us to remove one; "
            "then each question is a first one.",
        ]


def figures(acls: int) -> Figures:
    """Measures, in this process."""
    logging.getLogger(NAME).setLevel(logging.WARNING)  # Denials would be lines.
    nodes = Guarded(acls)
    read, topic = AclOperation.READ, ResourceType.TOPIC
    asked = [nodes.question() for _ in range(1000)]
    for client, name in asked:
        allows(client, read, topic, name, quiet=False)

    def cached() -> None:
        for _ in range(QUESTIONS // len(asked)):
            for client, name in asked:
                allows(client, read, topic, name, quiet=False)

    best = min(timed(cached) for _ in range(ROUNDS)) / QUESTIONS
    different = list({(id(client), name): (client, name) for client, name in (nodes.question() for _ in range(FIRST))}.values())

    def first() -> None:
        for client, name in different:
            allows(client, AclOperation.DESCRIBE, topic, name, quiet=False)

    once = timed(first) / len(different)
    added = [acl_record(random_uuid(nodes.rng), nodes._entry(number)) for number in range(CHANGES)]
    adding = timed(lambda: [nodes.commit([record]) for record in added] and None) / CHANGES
    removing = timed(lambda: [nodes.commit([RemoveAccessControlEntryRecord(id=each.id)]) for each in added] and None) / CHANGES
    asked_in_all, allowed = nodes.access.allowed + nodes.access.denied, nodes.access.allowed
    return Figures(acls, asked_in_all, allowed, best * 1e6, once * 1e6, adding * 1e6, removing * 1e6)


def main(acls: int) -> None:
    """Prints them."""
    found = figures(acls)
    print(f"{acls:,} ACLs, {found.questions:,} questions, {found.allowed:,} of them allowed")
    print("\n".join(found.lines()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
