from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.broker.audit.audit_log import SAMPLED, AuditLog, AuditSettings
from tidelog.broker.audit.events import LONGEST_TEXT
from tidelog.broker.audit.line_queue import LineQueue
from tidelog.broker.request import Session
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tidelog.security.authorizer import Decision, Rule
from tidelog.security.principal import KafkaPrincipal

TOPIC = ResourceType.TOPIC
YES, NO, ROOT = Decision(True, Rule.ALLOW), Decision(False, Rule.NO_ACL), Decision(True, Rule.SUPER_USER)
INTERVAL_MS = 60_000
ALICE = KafkaPrincipal("User", "alice")


@dataclass(frozen=True)
class Client:
    principal: KafkaPrincipal = ALICE
    peer_host: str = "10.0.0.7"
    listener: str = "CLIENTS"
    api_key: int = ApiKey.FETCH
    client_id: str | None = "me"
    correlation_id: int = 1


class World:
    def __init__(self, *, interval_ms: int = INTERVAL_MS, per_second: int = 100, lines: int = 100, topic: str = "") -> None:
        self.now_ms = 1_700_000_000_000
        self.queues = [LineQueue(most_lines=lines), LineQueue()]
        settings = AuditSettings(interval_ms, per_second, topic)
        self.audit = AuditLog(3, settings, self.queues, now_ms=lambda: self.now_ms, even_ms=lambda: self.now_ms)

    def events(self) -> list[dict[str, Any]]:
        """What was written since the last call."""
        lines = self.queues[1].first(10_000, 1 << 30)
        self.queues[1].done(len(lines))
        return [json.loads(line) for line in lines]

    def read(self, name: str = "t", operation: int = Op.READ, client: Client | None = None, decision: Decision = YES) -> None:
        self.audit.allowed(client or Client(), operation, TOPIC, name, decision)


def named(events: Sequence[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(each["operation"], each["resourceName"], each["allowed"]) for each in events]


def test_changes_are_always_written_and_reads_once_an_interval() -> None:
    world = World()
    for _ in range(3):
        world.read()
        world.read(operation=Op.ALTER)
    assert named(world.events()) == [("READ", "t", True), *[("ALTER", "t", True)] * 3]
    world.now_ms += INTERVAL_MS
    world.read()
    (event,) = world.events()
    assert event["leftOut"] == 2


def test_what_is_sampled_is_reading_writing_records_and_what_nodes_do() -> None:
    changes = set(Op) - SAMPLED - {Op.UNKNOWN, Op.ANY}
    assert changes == {
        *(Op.ALL, Op.CREATE, Op.DELETE, Op.ALTER, Op.ALTER_CONFIGS),
        *(Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS, Op.TWO_PHASE_COMMIT),
    }


def test_another_client_address_api_or_resource_is_another_kind() -> None:
    world = World()
    kinds = (
        Client(),
        Client(KafkaPrincipal("User", "bob")),
        Client(peer_host="10.0.0.8"),
        Client(api_key=ApiKey.OFFSET_COMMIT),
        Client(client_id="other", correlation_id=9),
    )
    for client in kinds:
        world.read(client=client)
    world.read("u")
    assert len(world.events()) == 5, "a client id is free to change"


def test_denials_and_failed_logins_are_bounded_each_for_itself() -> None:
    world = World(per_second=2)
    for _ in range(5):
        world.audit.denied(Client(), Op.READ, TOPIC, "t", NO, dry_run=False)
        world.audit.login_failed("CLIENTS", "10.0.0.7", "PLAIN", "an unknown user or a wrong password, user 'eve'")
    assert [event["type"] for event in world.events()] == ["authorization", "authentication"] * 2
    assert (world.audit.left_out.denials, world.audit.left_out.failed_logins) == (3, 3)
    for _ in range(200):
        world.audit.logged_in(Session("CLIENTS", "10.0.0.7", KafkaPrincipal("User", "alice")), "PLAIN", False)
    assert len(world.events()) == 200, "logins have no bound"


def test_what_was_left_out_is_an_event_of_its_own_once() -> None:
    world = World(per_second=1)
    for name in ("a", "a", "b"):
        world.read(name)
    world.audit.denied(Client(), Op.READ, TOPIC, "t", NO, dry_run=False)
    world.audit.denied(Client(), Op.READ, TOPIC, "t", NO, dry_run=False)
    world.events()
    world.audit.minute()
    (counts,) = world.events()
    assert {key: counts[key] for key in ("type", "reads", "denials", "failedLogins", "dropped")} == {
        "type": "left-out",
        "reads": 2,
        "denials": 1,
        "failedLogins": 0,
        "dropped": 0,
    }
    world.audit.minute()
    assert world.events() == []
    world.now_ms += INTERVAL_MS
    world.audit.minute()
    (repeated,) = world.events()
    assert (repeated["resourceName"], repeated["leftOut"]) == ("a", 1)


def test_long_names_that_differ_only_in_what_no_event_shows_are_one_kind() -> None:
    world = World()
    for end in "abc":
        world.read("x" * LONGEST_TEXT + end)
    (event,) = world.events()
    assert (event["resourceName"], event["cut"], world.audit.left_out.reads) == ("x" * LONGEST_TEXT, True, 2)
    world.now_ms += INTERVAL_MS
    world.audit.minute()
    assert [each.get("leftOut") for each in world.events() if "resourceName" in each] == [2]


def test_a_full_queue_drops_with_a_count_and_leaves_the_other_alone() -> None:
    world = World(lines=2)
    for _ in range(5):
        world.read(operation=Op.CREATE)
    assert len(world.events()) == 5
    assert world.audit.left_out.dropped == 3
    world.audit.minute()
    assert world.events()[0]["dropped"] == 3


def test_a_nodes_produce_to_the_audit_topic_is_no_event_and_a_clients_is() -> None:
    world = World(topic="__audit")
    node = Client(KafkaPrincipal("User", "node"), api_key=ApiKey.PRODUCE)
    world.read("__audit", Op.WRITE, node, ROOT)
    assert world.events() == []
    world.read("__audit", Op.WRITE, node, YES)
    world.read("__audit", Op.READ, node, ROOT)
    world.read("orders", Op.WRITE, node, ROOT)
    world.audit.denied(node, Op.WRITE, TOPIC, "__audit", NO, dry_run=False)
    assert named(world.events()) == [
        ("WRITE", "__audit", True),
        ("READ", "__audit", True),
        ("WRITE", "orders", True),
        ("WRITE", "__audit", False),
    ]


def test_every_event_has_its_own_id() -> None:
    world = World()
    for _ in range(3):
        world.read(operation=Op.DELETE)
    ids = [event["id"] for event in world.events()]
    assert len(set(ids)) == 3
    assert all(each.startswith("3-1700000000000-") for each in ids)


def test_a_denial_of_a_dry_run_says_that_it_was_none() -> None:
    world = World()
    for dry_run in (False, True):
        world.audit.denied(Client(), Op.READ, TOPIC, "t", NO, dry_run=dry_run)
    assert [(event["allowed"], event.get("dryRun")) for event in world.events()] == [(False, None), (False, True)]


def test_a_decision_about_a_whole_request_names_what_it_is_about() -> None:
    world = World()
    request = UnregisterBrokerRequest(broker_id=4)
    client = Client(api_key=ApiKey.UNREGISTER_BROKER)
    world.audit.allowed(client, Op.ALTER, ResourceType.CLUSTER, "kafka-cluster", ROOT, request)
    world.audit.denied(client, Op.ALTER, ResourceType.CLUSTER, "kafka-cluster", NO, request, dry_run=False)
    assert [event["targets"] for event in world.events()] == [["broker 4"]] * 2
