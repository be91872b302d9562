from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import Any

from tests.unit.security.acl_entries import acl
from tidelog.cli.tools.acl_suggestion import Done, Needed, Use, needed, read, suggestion, unused
from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl import AclOperation as Op

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
ALICE = "User:alice"


def event(operation: str = "READ", name: str = "orders", kind: str = "TOPIC", **changed: Any) -> str:
    return json.dumps(
        {
            "id": "1-1-1",
            "time": "2026-01-01T00:00:00.000Z",
            "node": 1,
            "type": "authorization",
            "principal": ALICE,
            "host": "10.0.0.1",
            "request": "Fetch",
            "operation": operation,
            "resourceType": kind,
            "resourceName": name,
            "allowed": True,
            **changed,
        }
    )


def use(operation: Op = Op.READ, name: str = "orders", kind: ResourceType = TOPIC, host: str = "10.0.0.1") -> Use:
    return Use(kind, name, operation, host)


def told(lines: Iterable[str], existing: list[AccessControlEntry] | None = None, **flags: bool) -> list[str]:
    flags = {"with_hosts": False, "with_denied": False, **flags}
    return list(suggestion(read(lines, ALICE), ALICE, existing, ["--bootstrap-server", "h:9092"], **flags))


def test_only_what_the_principal_did_counts() -> None:
    done = read(
        [
            event(time="2026-01-02T00:00:00.000Z"),
            event("WRITE", time="2026-01-01T00:00:00.000Z"),
            event("ALTER", principal="User:bob", time="2025-01-01T00:00:00.000Z"),
            event("DELETE", allowed=False),
            event("CREATE", allowed=False, dryRun=True),
            event("ALTER", type="authentication"),
            json.dumps({"type": "left-out", "reads": 7}),
            "",
        ],
        ALICE,
    )
    assert done.uses == {use(), use(Op.WRITE), use(Op.CREATE)}
    assert done.denied == {use(Op.DELETE)}
    assert (done.first, done.last) == ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")


def test_lines_that_are_no_events_are_counted_and_cut_names_never_used() -> None:
    done = read(['{"type":"author', "[]", "7", event(operation="READ2"), event(cut=True), event()], ALICE)
    assert (done.uses, done.unreadable) == ({use()}, 4 + 1)


def test_an_operation_that_another_includes_is_left_out() -> None:
    uses = [use(Op.DESCRIBE), use(Op.READ), use(Op.DESCRIBE, "other"), use(Op.ALTER_CONFIGS), use(Op.DESCRIBE_CONFIGS)]
    assert needed(uses, with_hosts=False) == [
        Needed(TOPIC, (Op.READ, Op.ALTER_CONFIGS), (), ("orders",)),
        Needed(TOPIC, (Op.DESCRIBE,), (), ("other",)),
    ]


def test_resources_with_the_same_needs_share_a_command() -> None:
    uses = [use(Op.READ, name) for name in "bca"] + [use(Op.READ, "g", GROUP), use(Op.CREATE, "kafka-cluster", CLUSTER)]
    assert needed(uses, with_hosts=False) == [
        Needed(TOPIC, (Op.READ,), (), ("a", "b", "c")),
        Needed(GROUP, (Op.READ,), (), ("g",)),
        Needed(CLUSTER, (Op.CREATE,), (), ("kafka-cluster",)),
    ]


def test_addresses_are_kept_where_they_are_asked_for() -> None:
    uses = [use(host="10.0.0.1"), use(host="10.0.0.2"), use(Op.WRITE, host="10.0.0.3")]
    assert needed(uses, with_hosts=True) == [
        Needed(TOPIC, (Op.READ,), ("10.0.0.1", "10.0.0.2"), ("orders",)),
        Needed(TOPIC, (Op.WRITE,), ("10.0.0.3",), ("orders",)),
    ]
    assert needed(uses, with_hosts=False) == [Needed(TOPIC, (Op.READ, Op.WRITE), (), ("orders",))]


def test_an_acl_is_used_when_it_allows_something_that_was_done() -> None:
    uses = [use(Op.DESCRIBE), use(Op.READ, "g", GROUP), use(Op.WRITE, "*")]
    used = [
        acl(operation=Op.DESCRIBE),
        acl(operation=Op.READ),
        acl(operation=Op.ALL, name="*"),
        acl("or", Op.ALTER, pattern=PatternType.PREFIXED),
        acl("g", resource=GROUP, host="10.0.0.1"),
        acl("elsewhere", Op.WRITE),
    ]
    idle = [
        acl("elsewhere", Op.READ),
        acl(operation=Op.CREATE),
        acl("g", resource=GROUP, host="10.0.0.2"),
        acl("orders", Op.READ, resource=GROUP),
        acl("ord", Op.READ),
    ]
    others = [acl("x", principal="User:*"), acl("x", principal="User:bob"), acl("x", permission=PermissionType.DENY)]
    assert unused([*used, *idle, *others], ALICE, uses) == idle
    assert unused([acl("elsewhere", Op.WRITE)], ALICE, [*uses, use(Op.WRITE)]) == [acl("elsewhere", Op.WRITE)]


def test_the_commands_allow_what_was_done_and_name_what_was_never_used() -> None:
    lines = told(
        [
            *(event(), event("DESCRIBE"), event("READ", "my group", "GROUP"), event("WRITE")),
            *(event("WRITE", "*"), event("CREATE", "x", allowed=False)),
        ],
        [acl(), acl("old", Op.ALL, pattern=PatternType.PREFIXED)],
    )
    assert lines[0] == f"# What {ALICE} did from 2026-01-01T00:00:00.000Z to 2026-01-01T00:00:00.000Z:"
    add = "tidelog acls --bootstrap-server h:9092 --add --allow-principal User:alice"
    assert lines[1:3] == [
        f"{add} --operation Read --operation Write --topic orders",
        f"{add} --operation Read --group 'my group'",
    ]
    assert lines[3:] == [
        "# 1 kinds of operations were denied and are not in it; --denied adds them.",
        "# These ACLs allowed nothing of it. To remove them:",
        "# tidelog acls --bootstrap-server h:9092 --remove --allow-principal User:alice --operation All --topic old "
        "--resource-pattern-type prefixed",
    ]


def test_what_was_denied_is_added_where_it_is_asked_for() -> None:
    lines = told([event("CREATE", "kafka-cluster", "CLUSTER", allowed=False)], with_denied=True, with_hosts=True)
    assert shlex.split(lines[1])[4:] == [
        *("--add", "--allow-principal", ALICE, "--allow-host", "10.0.0.1", "--operation", "Create", "--cluster")
    ]
    assert lines[2:] == ["# Give --bootstrap-server to compare this with the ACLs that there are."]


def test_a_principal_that_did_nothing_gets_no_command() -> None:
    assert told(["cut"], []) == ["# 1 lines could not be read.", f"# The audit has nothing that {ALICE} did."]
    assert Done().first == ""
    assert told([event("WRITE", "*")], [])[1:] == ["# It also asked whether it may Write some topic, and did with none."]
