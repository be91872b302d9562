"""ACLs come and go while clients work: rights are given by literal, prefixed and wildcard ACLs, and taken by their removal or by
a deny. ``moved`` loses its rights and gets them back, each time without a restart; ``steady`` must notice nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka.admin import AclBinding, ResourceType

from tests.interop.java import JavaSide
from tests.security_changes.account import Account
from tests.security_changes.clients import AiokafkaReader, KafkaPythonWriter, Reader, Transactions, Writer
from tests.security_changes.cluster import Administrator, SecurableCluster, acl, everything
from tests.security_changes.crowd import Crowd, JavaClients

TOPIC = "acls-shared"
DENIED = "TOPIC_AUTHORIZATION_FAILED"
MOVED = ("moved-writer", "moved-reader", "moved-transactions")
STEADY = ("steady-writer", "steady-reader", "steady-transactions", "steady-kafka-python", "steady-aiokafka")
UNRELATED = 20
"""ACLs of other users on the same topic that come and go with each change."""


class Change(NamedTuple):
    """How ``moved`` has its rights, and how it loses them. READ comes first: a broker that knows the last rule knows it, too."""

    given: list[AclBinding]
    denied: list[AclBinding]
    """Empty: the rules are removed."""


def _both(name: str, *, prefixed: bool = False, deny: bool = False) -> list[AclBinding]:
    return [acl("moved", operation, name=name, prefixed=prefixed, deny=deny) for operation in ("READ", "WRITE")]


CHANGES = {
    "literal removed": Change(_both(TOPIC), []),
    "prefixed removed": Change(_both("acls-", prefixed=True), []),
    "wildcard removed": Change(_both("*"), []),
    "literal, denied by a literal": Change(_both(TOPIC), _both(TOPIC, deny=True)),
    "wildcard, denied by a prefix": Change(_both("*"), _both("acls-", prefixed=True, deny=True)),
    "prefixed, denied by a wildcard": Change(_both("acls-", prefixed=True), _both("*", deny=True)),
}
SHORT = ("prefixed removed", "wildcard, denied by a prefix")


class AclChanges:
    """One run on a secured cluster. ``java``: None without Kafka's own clients."""

    def __init__(self, cluster: SecurableCluster, java: JavaSide | None, say: Callable[[str], None], seed: int) -> None:
        self.cluster, self.say, self.rng = cluster, say, random.Random(seed)
        self.account = Account()
        self.admin = Administrator(cluster.administrator())
        self.admin.create(TOPIC)
        for user in ("steady", "moved"):
            self.admin.password(user)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
            self.admin.allow(acl("steady", "ALL", kind))
        groups = acl("moved", "READ", ResourceType.GROUP, "moved-", prefixed=True)
        transactions = acl("moved", "WRITE", ResourceType.TRANSACTIONAL_ID, "moved-", prefixed=True)
        self.admin.allow(groups, transactions, acl("moved", "DESCRIBE", name=TOPIC))
        steady = cluster.user("steady")
        self.java = None if java is None else JavaClients(java, self.account, steady, TOPIC)
        self.crowd = Crowd(self.account, self.java)

    def run(self, changes: list[str]) -> list[str]:
        """All that is wrong."""
        account, steady, moved = self.account, self.cluster.user("steady"), self.cluster.user("moved")
        self.admin.allow(*CHANGES[changes[0]].given)
        with self.crowd as crowd:
            for name, kind in zip(STEADY, (Writer, Reader, Transactions, KafkaPythonWriter, AiokafkaReader), strict=True):
                crowd.add(kind(name, account, steady, TOPIC))
            # The first ACLs may not have reached every broker: refusals count from the first change.
            for name, kind in zip(MOVED, (Writer, Reader, Transactions), strict=True):
                crowd.add(kind(name, account, moved, TOPIC, refusals=(DENIED,)))
            account.go_on(crowd.names)
            for number, name in enumerate(changes):
                following = CHANGES[changes[(number + 1) % len(changes)]]
                self.change(name, following)
            groups = crowd.finish()
        found = everything(self.cluster.administrator(), TOPIC)
        wrong = account.verdict(found, groups) + ([] if self.java is None else self.java.finish(found))
        return wrong + ([f"clients reported {account.notices[:5]}"] if account.notices else [])

    def change(self, name: str, following: Change) -> None:
        """The rights go and come back; in between ``moved`` is refused on every partition and reads nothing that is written."""
        account, (given, denied) = self.account, CHANGES[name]
        if self.java is not None:
            self.java.write()
        unrelated = self.unrelated()
        self.admin.allow(*unrelated)
        before = account.refusals["moved-reader"]
        if denied:
            self.admin.allow(*denied)
        else:
            self.admin.take_back(*given)
        seconds = self.only_refused()
        # Every broker has read the change: what is produced from here on does not reach the reader.
        since = {each: self.crowd[each].count for each in ("steady-writer", "steady-kafka-python")}
        written = account.progress["moved-writer"], account.progress["moved-transactions"]
        account.go_on(STEADY, more=5)
        account.until(lambda: account.refusals["moved-reader"] > before, "the reader is refused")
        self.nothing_passed(since, written)
        self.admin.take_back(*unrelated)
        stood = {each: account.progress[each] for each in MOVED}
        self.admin.allow(*following.given)
        self.admin.take_back(*(each for each in [*given, *denied] if each not in following.given))
        back = account.until(lambda: all(account.progress[each] > stood[each] for each in MOVED), "moved comes back")
        account.go_on(self.crowd.names)
        self.say(f"{name}: refused by every broker {seconds:.1f} s after the answer, back {back:.1f} s after the grant")

    def only_refused(self) -> float:
        """Waits until the writer is refused six times in a row, over all partitions, and the transactions are refused."""
        account = self.account
        state = [account.progress["moved-writer"], account.refusals["moved-writer"]]
        transactions = account.refusals["moved-transactions"]

        def only() -> bool:
            if account.progress["moved-writer"] != state[0]:
                state[:] = account.progress["moved-writer"], account.refusals["moved-writer"]
            return account.refusals["moved-writer"] >= state[1] + 6 and account.refusals["moved-transactions"] > transactions

        return account.until(only, "the writer is refused on every partition")

    def nothing_passed(self, since: dict[str, int], written: tuple[int, int]) -> None:
        account = self.account
        if (account.progress["moved-writer"], account.progress["moved-transactions"]) != written:
            account.failed("moved", "a record was acknowledged after every broker had refused it")
        for value in list(account.read["moved-reader"].values()):
            writer, _, number = value.decode().partition("/")
            if writer in since and int(number) > since[writer] + 1:
                account.failed("moved-reader", f"it read {value!r}, written after every broker had read the change")

    def unrelated(self) -> list[AclBinding]:
        """ACLs for others, also deny rules, of all kinds of patterns."""
        found = []
        for number in range(UNRELATED):
            name, prefixed = self.rng.choice([(TOPIC, False), ("acls-", True), ("*", False), ("a", True)])
            operation = self.rng.choice(["READ", "WRITE", "DESCRIBE", "DELETE"])
            found.append(acl(f"other-{number}", operation, name=name, prefixed=prefixed, deny=self.rng.random() < 0.5))
        return found
