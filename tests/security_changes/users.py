"""Users come and go, and passwords change, while clients work.

``steady`` is a bystander, by both mechanisms. ``rolled`` gets a new password without a refusal: for the mechanism that its
clients do not use yet, then they are restarted one by one, then the former credential goes. ``late`` changes its password in
place, and its client learns it afterwards. ``leaving`` is removed, is refused, and comes back.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import ResourceType

from tests.interop.java import JavaSide
from tests.security_changes.access import Access
from tests.security_changes.account import Account
from tests.security_changes.clients import AiokafkaReader, Reader, Transactions, Writer
from tests.security_changes.cluster import Administrator, SecurableCluster, acl, everything
from tests.security_changes.crowd import Crowd, JavaClients

TOPIC = "users"
SESSION_S = 3.0
"""By SCRAM-SHA-256 a session ends after this time (KIP-368); by SCRAM-SHA-512 none does."""
SETTINGS = {
    "listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clients.scram-sha-256.connections.max.reauth.ms": str(int(SESSION_S * 1000)),
}
SHORT, LONG = "SCRAM-SHA-256", "SCRAM-SHA-512"
MARGIN_S = 2.0
"""What a report of an acknowledgement may lag behind."""
USERS = ("steady", "rolled", "late", "leaving")
REFUSED = "_AUTHENTICATION"


class UserChanges:
    """One run on a secured cluster. ``java``: None without Kafka's own clients."""

    def __init__(self, cluster: SecurableCluster, java: JavaSide | None, say: Callable[[str], None], seed: int) -> None:
        self.cluster, self.say, self.rng = cluster, say, random.Random(seed)
        self.account = Account()
        self.admin = Administrator(cluster.administrator())
        self.admin.create(TOPIC)
        self.passwords = {user: f"{user}-first" for user in USERS}
        for user in USERS:
            self.admin.password(user, self.passwords[user], SHORT)
            self.allow(user)
        self.admin.password("steady", self.passwords["steady"], LONG)
        self.known_everywhere(self.access("steady", LONG))  # the latest change: a broker that knows it knows the others, too
        self.java = None if java is None else JavaClients(java, self.account, self.access("steady", LONG), TOPIC)
        self.crowd = Crowd(self.account, self.java)

    def allow(self, user: str) -> None:
        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        self.admin.allow(*(acl(user, "ALL", kind) for kind in kinds))

    def access(self, user: str, mechanism: str, only: int | None = None) -> Access:
        return self.cluster.user(user, self.passwords[user], mechanism, only)

    def run(self, rounds: int) -> list[str]:
        """All that is wrong."""
        account, short = self.account, self.access("steady", SHORT)
        with self.crowd as crowd:
            for kind, access in ((Writer, self.access("steady", LONG)), (Reader, short), (Transactions, short)):
                crowd.add(kind(f"steady-{kind.__name__.lower()}", account, access, TOPIC))
            crowd.add(Writer("steady-sessions", account, short, TOPIC))
            crowd.add(AiokafkaReader("steady-aiokafka", account, self.access("steady", LONG), TOPIC))
            for user in ("rolled", "late", "leaving"):
                crowd.add(Writer(f"{user}-writer", account, self.access(user, SHORT), TOPIC))
            crowd.add(Reader("rolled-reader", account, self.access("rolled", SHORT), TOPIC))
            account.go_on(crowd.names)
            former = SHORT
            for number in range(rounds):
                former = self.round(number, former)
            account.go_on(crowd.names)
            groups = crowd.finish()
        found = everything(self.cluster.administrator(), TOPIC)
        wrong = account.verdict(found, groups) + ([] if self.java is None else self.java.finish(found))
        return wrong + self.noticed()

    def noticed(self) -> list[str]:
        """What clients reported that had nothing to report. One whose session ends may be late to log in again, on a machine that
        is busy: then its connection ends, and it comes back. No broker may refuse it."""
        seen = [each for each in self.account.notices if not each[0].startswith(("late", "leaving"))]
        found = [each for each in seen if each[0] == "steady-writer" or _is_refusal(each)]
        return [f"clients whose users did not change saw {found[:5]}"] if found else []

    def round(self, number: int, former: str) -> str:
        """The mechanism by which ``rolled`` logs in afterwards."""
        if self.java is not None:
            self.java.write()
        former = self.roll(number, former)
        self.newcomer(f"new-{number}")
        self.remove_and_change(number)
        self.account.go_on(self.crowd.names)
        return former

    def roll(self, number: int, former: str) -> str:
        """A new password with both in force while clients move."""
        old, user = self.access("rolled", former), "rolled"
        mechanism = LONG if former == SHORT else SHORT
        self.passwords[user] = f"rolled-{number}"
        self.admin.password(user, self.passwords[user], mechanism)
        new = self.access(user, mechanism)
        self.known_everywhere(new)
        clients = ["rolled-writer", "rolled-reader"]
        self.rng.shuffle(clients)
        for name in clients:
            self.crowd[name].move(new)
            self.account.go_on([name])
        self.admin.remove(user, former)
        seconds = self.refused_everywhere(old)
        self.account.go_on(clients)
        self.say(f"{user} has a new password by {mechanism}; no broker takes the former one {seconds:.1f} s after the answer")
        return mechanism

    def newcomer(self, user: str) -> None:
        """A user that did not exist works as soon as every broker knows it."""
        self.passwords[user] = f"{user}-secret"
        self.admin.password(user, self.passwords[user], LONG)
        self.allow(user)
        seconds = self.known_everywhere(self.access(user, LONG))
        writer = Writer(f"{user}-writer", self.account, self.access(user, LONG), TOPIC)
        self.crowd.add(writer)
        self.account.go_on([writer.name])
        self.crowd.leave(writer.name)
        self.admin.remove(user, LONG)
        self.say(f"{user} was added, and every broker knew it {seconds:.1f} s after the answer")

    def remove_and_change(self, number: int) -> None:
        """``leaving`` is removed: refused at once for new connections, after its session for open ones. ``late`` gets another
        password meanwhile, and its client continues with it."""
        self.admin.remove("leaving", SHORT)
        seconds = self.refused_everywhere(self.access("leaving", SHORT))
        removed = time.monotonic()
        self.passwords["late"] = f"late-{number}"
        self.admin.password("late", self.passwords["late"], SHORT)
        late = self.crowd["late-writer"]
        assert isinstance(late, Writer)
        late.login(self.passwords["late"])
        time.sleep(max(0.0, removed + SESSION_S + MARGIN_S - time.monotonic()))
        before = self.account.progress["leaving-writer"]
        self.account.go_on(["late-writer", "steady-writer", "steady-sessions"], more=10)
        after = self.account.progress["leaving-writer"]
        if after != before:
            self.account.failed("leaving-writer", f"{after - before} records were acknowledged after its session")
        if not any(each[0] == "leaving-writer" and _is_refusal(each) for each in self.account.notices):
            self.account.failed("leaving-writer", f"librdkafka did not report {REFUSED}")
        self.say(f"leaving was removed: no broker logs it in {seconds:.1f} s after the answer, no record after its session")
        self.admin.password("leaving", self.passwords["leaving"], SHORT)
        self.account.go_on(["leaving-writer"])

    def known_everywhere(self, access: Access) -> float:
        """Waits until every broker logs the user in; the seconds that it took."""
        return self._everywhere(access, True)

    def refused_everywhere(self, access: Access) -> float:
        """Waits until no broker logs the user in."""
        return self._everywhere(access, False)

    def _everywhere(self, access: Access, known: bool) -> float:
        ways = [self.cluster.user(access.user, access.password, access.mechanism, only) for only in self.cluster.brokers]
        word = "logs in" if known else "refuses"
        return self.account.until(
            lambda: all(_logs_in(way) is known for way in ways), f"every broker {word} {access.user} by {access.mechanism}"
        )


def _is_refusal(notice: tuple[str, str, str]) -> bool:
    """Whether a broker refused the login; librdkafka has the same error for a connection that ends before its login does."""
    return notice[1] == REFUSED and "authentication error" in notice[2]


def _logs_in(access: Access) -> bool:
    """Whether a new connection can."""
    errors: list[str] = []
    client = Consumer({**access.librdkafka, "group.id": "probe", "error_cb": lambda error: errors.append(error.name())})
    try:
        for _ in range(200):
            with contextlib.suppress(KafkaException):
                client.list_topics(timeout=0.2)
                return True
            client.poll(0)
            if REFUSED in errors:
                return False
        raise AssertionError(f"neither logged in nor refused: {errors}")
    finally:
        client.close()
