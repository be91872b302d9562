from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tidelog.broker.access_control import AclAccessControl
from tidelog.broker.dry_run import DryRun
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.snapshot import acl_record
from tidelog.model.acl import CLUSTER_NAME, AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from tidelog.security.authorizer import Authorizer, Decision, Rule
from tidelog.security.principal import KafkaPrincipal

TOPIC = ResourceType.TOPIC
CLUSTER = (ResourceType.CLUSTER, CLUSTER_NAME)
ALICE, ROOT = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "root")


@dataclass
class Client:
    principal: KafkaPrincipal = ALICE
    peer_host: str = "10.0.0.1"
    api_key: int = 1
    listener: str = "CLIENTS"
    client_id: str | None = "me"
    correlation_id: int = 7


@dataclass
class Log:
    debug: bool = False
    lines: list[tuple[str, str, Rule, bool]] = field(default_factory=list)

    def tells_allowed(self) -> bool:
        return self.debug

    def denied(self, client: Any, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        self.lines.append(("denied", name, decision.rule, quiet))

    def allowed(self, client: Any, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        self.lines.append(("allowed", name, decision.rule, quiet))


@dataclass
class Audit:
    events: list[tuple[bool, Op, str, str, Rule]] = field(default_factory=list)
    dry_runs: list[bool] = field(default_factory=list)
    requests: list[object] = field(default_factory=list)

    def allowed(
        self, client: Any, operation: int, resource_type: int, name: str, decision: Decision, request: object = None
    ) -> None:
        self.requests.append(request)
        self.events.append((True, Op(operation), ResourceType(resource_type).name, name, decision.rule))

    def denied(
        self,
        client: Any,
        operation: int,
        resource_type: int,
        name: str,
        decision: Decision,
        request: object = None,
        *,
        dry_run: bool,
    ) -> None:
        self.requests.append(request)
        self.events.append((False, Op(operation), ResourceType(resource_type).name, name, decision.rule))
        self.dry_runs.append(dry_run)


def acl(name: str, permission: int = PermissionType.ALLOW, host: str = "*", operation: int = Op.READ) -> AccessControlEntry:
    return AccessControlEntry(TOPIC, name, PatternType.LITERAL, "User:alice", host, operation, permission)


def identity(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


class World:
    def __init__(self, *, loaded: bool = True, dry_run: DryRun | None = None) -> None:
        self.image = ClusterImage(cluster_id="c")
        self.log = Log()
        self.loaded = loaded
        self.audit = Audit()
        self.access = AclAccessControl(Authorizer([ROOT]), self.log, lambda: self.loaded, self.audit, dry_run)

    def commit(self, *records: Any) -> None:
        delta = ClusterDelta(self.image)
        for record in records:
            delta.replay(record)
        old, self.image = self.image, delta.apply(self.image.offset + len(records), 1, 0)
        self.access.follow(old, self.image, delta)

    def reads(self, name: str, client: Client | None = None, quiet: bool = False) -> bool:
        return self.access.allows(client or Client(), Op.READ, TOPIC, name, quiet)


def test_a_commit_is_obeyed_from_the_next_question_on() -> None:
    world = World()
    assert not world.reads("t")
    world.commit(acl_record(identity(1), acl("t")))
    assert world.reads("t")
    assert world.access.acls == 1
    world.commit(acl_record(identity(2), acl("t", PermissionType.DENY)))
    assert not world.reads("t")
    world.commit(RemoveAccessControlEntryRecord(id=identity(2)))
    assert world.reads("t")
    world.commit(RemoveAccessControlEntryRecord(id=identity(1)))
    assert not world.reads("t")
    assert world.access.acls == 0


def test_one_commit_may_add_and_remove_and_do_both_to_one_acl() -> None:
    world = World()
    world.commit(acl_record(identity(1), acl("a")))
    world.commit(
        acl_record(identity(2), acl("b")),
        acl_record(identity(3), acl("c")),
        RemoveAccessControlEntryRecord(id=identity(3)),
        RemoveAccessControlEntryRecord(id=identity(1)),
        acl_record(identity(1), acl("d")),
    )
    assert [world.reads(name) for name in "abcd"] == [False, True, False, True]
    assert world.access.acls == len(world.image.acls) == 2


def test_a_snapshot_replaces_all_acls_at_once() -> None:
    world = World()
    world.commit(acl_record(identity(1), acl("a")))
    assert world.reads("a")
    old, world.image = world.image, replace(world.image, acls={identity(2): acl("b"), identity(3): acl("c")})
    world.access.follow(old, world.image, None)
    assert [world.reads(name) for name in "abc"] == [False, True, True]


def test_a_commit_without_acls_leaves_the_cached_decisions() -> None:
    world = World()
    world.commit(acl_record(identity(1), acl("a")))
    version = world.access._authorizer.version
    world.commit()
    assert world.access._authorizer.version == version


def test_until_the_acls_are_known_only_super_users_may_act() -> None:
    world = World(loaded=False)
    assert world.reads("t", Client(ROOT))
    for ask in (lambda: world.reads("t"), lambda: world.access.allows_any(Client(), Op.WRITE, TOPIC)):
        with pytest.raises(KafkaError) as refused:
            ask()
        assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    world.loaded = True
    assert not world.reads("t")
    world.loaded = False
    assert not world.reads("t"), "once loaded, always loaded"


def test_an_address_is_compared_in_the_form_of_the_acls() -> None:
    world = World()
    world.commit(acl_record(identity(1), acl("t", host="10.0.0.1")), acl_record(identity(2), acl("u", host="0:0:0:0:0:0:0:1")))
    assert world.reads("t", Client(peer_host="::ffff:10.0.0.1"))
    assert not world.reads("t", Client(peer_host="10.0.0.2"))
    assert world.reads("u", Client(peer_host="::1"))


def test_denials_are_reported_and_allowed_ones_only_where_the_log_takes_them() -> None:
    world = World()
    world.reads("t")
    world.reads("t", quiet=True)
    world.reads("t", Client(ROOT))
    world.log.debug = True
    world.reads("u", Client(ROOT), quiet=True)
    assert world.log.lines == [
        ("denied", "t", Rule.NO_ACL, False),
        ("denied", "t", Rule.NO_ACL, True),
        ("allowed", "u", Rule.SUPER_USER, True),
    ]
    assert (world.access.allowed, world.access.denied) == (2, 2)


def test_a_question_about_any_resource_is_counted() -> None:
    world = World()
    assert not world.access.allows_any(Client(), Op.WRITE, TOPIC)
    world.commit(acl_record(identity(1), acl("t", operation=Op.WRITE)))
    assert world.access.allows_any(Client(), Op.WRITE, TOPIC)
    assert (world.access.allowed, world.access.denied) == (1, 1)


def test_the_version_rises_with_a_change_of_the_acls_and_with_no_other_commit() -> None:
    world = World()
    before = world.access.version
    world.commit()
    assert world.access.version == before
    world.commit(acl_record(identity(1), acl("t")))
    assert world.access.version > before


def test_what_is_done_and_refused_is_audited_but_no_quiet_no_and_no_list_of_permissions() -> None:
    world = World()
    world.commit(acl_record(identity(1), acl("t")))
    world.reads("t")
    world.reads("t", quiet=True)
    world.reads("u")
    world.reads("u", quiet=True)
    assert world.access.shows(Client(), Op.READ, TOPIC, "t")
    assert not world.access.shows(Client(), Op.WRITE, TOPIC, "t")
    assert world.audit.events == [
        (True, Op.READ, "TOPIC", "t", Rule.ALLOW),
        (True, Op.READ, "TOPIC", "t", Rule.ALLOW),
        (False, Op.READ, "TOPIC", "u", Rule.NO_ACL),
    ]
    assert (world.access.allowed, world.access.denied) == (3, 3)


def test_a_permission_on_the_cluster_is_audited_as_what_it_was_used_for() -> None:
    world = World()
    assert not world.access.allows_by_cluster(Client(), Op.CREATE, TOPIC, ["a"])
    assert world.audit.events == []
    assert world.access.allows_by_cluster(Client(ROOT), Op.CREATE, TOPIC, ["a", "b"])
    assert world.audit.events == [(True, Op.CREATE, "TOPIC", name, Rule.SUPER_USER) for name in "ab"]
    assert world.log.lines == [("denied", "kafka-cluster", Rule.NO_ACL, True)]


def test_a_question_about_any_resource_is_audited_with_a_wildcard() -> None:
    world = World()
    assert not world.access.allows_any(Client(), Op.WRITE, TOPIC)
    world.commit(acl_record(identity(1), acl("t", operation=Op.WRITE)))
    assert world.access.allows_any(Client(), Op.WRITE, TOPIC)
    assert world.access.allows_any(Client(ROOT), Op.WRITE, TOPIC)
    assert world.audit.events == [
        (False, Op.WRITE, "TOPIC", "*", Rule.NO_MATCH),
        (True, Op.WRITE, "TOPIC", "*", Rule.ALLOW),
        (True, Op.WRITE, "TOPIC", "*", Rule.SUPER_USER),
    ]


def test_in_a_dry_run_a_denial_is_logged_counted_and_audited_and_goes_through() -> None:
    dry_run = DryRun()
    world = World(dry_run=dry_run)
    world.commit(acl_record(identity(1), acl("t", PermissionType.DENY)))
    assert world.reads("t")
    assert world.reads("u")
    assert world.access.allows_any(Client(), Op.WRITE, TOPIC)
    assert dry_run.denials == world.access.denied == 3
    assert [rule for _, _, rule, _ in world.log.lines] == [Rule.DENY, Rule.NO_ACL, Rule.NO_MATCH]
    assert [rule for *_, rule in world.audit.events] == [Rule.DENY, Rule.NO_ACL, Rule.NO_MATCH]
    assert world.audit.dry_runs == [True] * 3


def test_in_a_dry_run_a_list_is_whole_and_the_narrower_of_two_questions_is_the_one_that_would_be_denied() -> None:
    dry_run = DryRun()
    world = World(dry_run=dry_run)
    assert world.reads("hidden", quiet=True)
    assert not world.access.allows(Client(), Op.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, True)
    assert not world.access.allows_by_cluster(Client(), Op.CREATE, TOPIC, ["t"])
    assert not world.access.shows(Client(), Op.CREATE, TOPIC, "t"), "an answer lists the permissions that ACLs give"
    assert dry_run.denials == 0
    assert world.access.allows(Client(), Op.CREATE, TOPIC, "t", False)
    assert world.access.allows(Client(), Op.ALTER, ResourceType.CLUSTER, CLUSTER_NAME, False)
    assert dry_run.denials == 2


def test_in_a_dry_run_nothing_waits_for_the_acls() -> None:
    dry_run = DryRun()
    world = World(loaded=False, dry_run=dry_run)
    assert world.reads("t")
    assert world.access.shows(Client(), Op.READ, TOPIC, "t")
    assert world.access.allows_any(Client(), Op.WRITE, TOPIC)
    assert dry_run.denials == 0
    world.loaded = True
    assert world.reads("t")
    assert dry_run.denials == 1


def test_without_a_dry_run_the_audit_says_so() -> None:
    world = World()
    assert not world.reads("t")
    assert world.audit.dry_runs == [False]


def test_what_a_whole_request_needs_is_decided_with_the_request_for_the_audit() -> None:
    world = World()
    assert not world.access.allows(Client(), Op.ALTER, *CLUSTER, False, "the request")
    assert world.access.allows(Client(ROOT), Op.ALTER, *CLUSTER, False, "the request")
    assert world.audit.events == [
        (False, Op.ALTER, "CLUSTER", CLUSTER_NAME, Rule.NO_ACL),
        (True, Op.ALTER, "CLUSTER", CLUSTER_NAME, Rule.SUPER_USER),
    ]
    assert world.audit.requests == ["the request"] * 2
    assert (world.access.allowed, world.access.denied) == (1, 1)
    assert world.log.lines == [("denied", CLUSTER_NAME, Rule.NO_ACL, False)]
    dry_run = DryRun()
    assert World(dry_run=dry_run).access.allows(Client(), Op.ALTER, *CLUSTER, False, None)
    assert World(dry_run=dry_run, loaded=False).access.allows(Client(), Op.ALTER, *CLUSTER, False, None)
    assert dry_run.denials == 1
