from __future__ import annotations

import json

from tidelog.broker.audit import events
from tidelog.broker.audit.events import LONGEST_TEXT, Kind
from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.authorizer import Decision, Rule
from tidelog.security.principal import KafkaPrincipal

TOPIC = ResourceType.TOPIC


class Client:
    principal = KafkaPrincipal("User", "alice")
    peer_host = "10.0.0.7"
    listener = "CLIENTS"
    api_key = ApiKey.CREATE_TOPICS
    client_id = "console"
    correlation_id = 12


def test_a_decision_says_who_did_what_from_where_and_why() -> None:
    acl = AccessControlEntry(TOPIC, "or", PatternType.PREFIXED, "User:*", "*", Op.ALL, PermissionType.DENY)
    event = events.decision(Client(), Op.CREATE, TOPIC, "orders", Decision(False, Rule.DENY, acl))
    assert json.loads(events.line(event, "1-2-3", 1, 1_700_000_000_123)) == {
        "id": "1-2-3",
        "time": "2023-11-14T22:13:20.123Z",
        "node": 1,
        "type": "authorization",
        "principal": "User:alice",
        "host": "10.0.0.7",
        "request": "CreateTopics",
        "operation": "CREATE",
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "allowed": False,
        "rule": "acl",
        "listener": "CLIENTS",
        "clientId": "console",
        "correlationId": 12,
        "acl": {
            "resourceType": "TOPIC",
            "name": "or",
            "patternType": "PREFIXED",
            "principal": "User:*",
            "host": "*",
            "operation": "ALL",
            "permissionType": "DENY",
        },
    }


def test_every_rule_has_a_name() -> None:
    named = {rule: events.decision(Client(), Op.READ, TOPIC, "t", Decision(True, rule))["rule"] for rule in Rule}
    assert named[Rule.SUPER_USER] == "super-user"
    assert named[Rule.NO_ACL] == "no-acl"
    assert "acl" not in events.decision(Client(), Op.READ, TOPIC, "t", Decision(True, Rule.SUPER_USER))


def test_what_a_client_chose_stays_on_its_line_and_is_cut() -> None:
    class Hostile(Client):
        principal = KafkaPrincipal("User", 'a\n{"type":"authentication"}\u2028\ud800')
        client_id = "x" * 30_000

    line = events.line(events.decision(Hostile(), Op.READ, TOPIC, "t\r\n", Decision(False, Rule.NO_ACL)), "i", 1, 0)
    assert line.isascii()
    assert b"\n" not in line
    assert b"\r" not in line
    read = json.loads(line)
    assert read["principal"] == 'User:a\n{"type":"authentication"}\u2028\ud800'
    assert (len(read["clientId"]), read["cut"]) == (LONGEST_TEXT, True)


def test_reads_that_were_only_counted_are_one_event() -> None:
    kind = Kind(KafkaPrincipal("User", "alice"), "10.0.0.7", ApiKey.FETCH, Op.READ, TOPIC, "orders")
    assert events.repeated(kind, 41) == {
        "type": "authorization",
        "principal": "User:alice",
        "host": "10.0.0.7",
        "request": "Fetch",
        "operation": "READ",
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "allowed": True,
        "leftOut": 41,
    }


def test_a_login_and_a_failed_one() -> None:
    event = events.login("User:alice", "10.0.0.7", "CLIENTS", "SCRAM-SHA-512", again=False)
    assert event == {
        "type": "authentication",
        "principal": "User:alice",
        "host": "10.0.0.7",
        "listener": "CLIENTS",
        "mechanism": "SCRAM-SHA-512",
        "allowed": True,
    }
    assert events.login("User:alice", "h", "L", "PLAIN", again=True)["again"] is True
    failed = events.failed_login("10.0.0.7", "CLIENTS", "", "API key 3 before the client authenticated")
    assert (failed["principal"], failed["mechanism"], failed["allowed"]) == (None, None, False)
    assert failed["reason"] == "API key 3 before the client authenticated"
