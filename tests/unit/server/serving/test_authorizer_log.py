from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.loggers import LEVELS
from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.authorizer import Decision, Rule
from tidelog.security.principal import KafkaPrincipal
from tidelog.server.serving.authorizer_log import LINES_PER_SECOND, LONGEST_LINE, NAME, AuthorizerLog, line

TOPIC = ResourceType.TOPIC
NO = Decision(False, Rule.NO_MATCH)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(LEVELS["TRACE"], NAME):
        logging.getLogger(NAME).setLevel(logging.INFO)
        yield caplog


class Client:
    principal = KafkaPrincipal("User", "alice")
    peer_host = "10.0.0.7"
    api_key = ApiKey.FETCH
    listener = "CLIENTS"
    client_id = None
    correlation_id = 1


def told(lines: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in lines.records if each.name == NAME]


def test_a_line_has_kafkas_form() -> None:
    deny = AccessControlEntry(TOPIC, "or", PatternType.PREFIXED, "User:*", "*", Op.ALL, PermissionType.DENY)
    assert line(Client(), Op.READ, TOPIC, "orders", Decision(False, Rule.DENY, deny)) == (
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.7 on resource = Topic:LITERAL:orders for request = "
        "Fetch with resourceRefCount = 1 based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=or, "
        "patternType=PREFIXED, principal=User:*, host=*, operation=ALL, permissionType=DENY])"
    )
    for decision, rule in (
        (NO, "DefaultDeny"),
        (Decision(True, Rule.NO_ACL), "DefaultAllow"),
        (Decision(True, Rule.SUPER_USER), "SuperUser"),
    ):
        assert line(Client(), Op.READ, TOPIC, "orders", decision).endswith(f"based on rule {rule}")
    assert " is Allowed " in line(Client(), Op.READ, TOPIC, "orders", Decision(True, Rule.SUPER_USER))


def test_a_name_from_the_network_stays_on_its_line() -> None:
    text = line(Client(), Op.READ, TOPIC, "a\nPrincipal = User:root\x1b[0m", NO)
    assert r"a\nPrincipal = User:root\x1b[0m" in text
    assert text.isprintable()
    assert len(line(Client(), Op.READ, TOPIC, "x" * 30_000, NO)) == LONGEST_LINE


def test_denied_is_info_allowed_is_debug_and_quiet_is_trace(lines: pytest.LogCaptureFixture) -> None:
    log = AuthorizerLog(lambda: 0)
    yes = Decision(True, Rule.SUPER_USER)
    assert not log.tells_allowed()
    log.denied(Client(), Op.READ, TOPIC, "t", NO, True)
    log.denied(Client(), Op.READ, TOPIC, "t", NO, False)
    assert [level for level, _ in told(lines)] == [logging.INFO]
    logging.getLogger(NAME).setLevel(logging.DEBUG)
    assert log.tells_allowed()
    log.allowed(Client(), Op.READ, TOPIC, "t", yes, True)
    log.allowed(Client(), Op.READ, TOPIC, "t", yes, False)
    assert [level for level, _ in told(lines)] == [logging.INFO, logging.DEBUG]
    logging.getLogger(NAME).setLevel(LEVELS["TRACE"])
    log.allowed(Client(), Op.READ, TOPIC, "t", yes, True)
    log.denied(Client(), Op.READ, TOPIC, "t", NO, True)
    assert [level for level, _ in told(lines)][2:] == [LEVELS["TRACE"]] * 2


def test_a_flood_of_denials_does_not_fill_the_disk(lines: pytest.LogCaptureFixture) -> None:
    now = 0
    log = AuthorizerLog(lambda: now)
    for _ in range(LINES_PER_SECOND + 20):
        log.denied(Client(), Op.READ, TOPIC, "t", NO, False)
    assert len(told(lines)) == LINES_PER_SECOND
    now = 1000
    log.denied(Client(), Op.READ, TOPIC, "t", NO, False)
    assert told(lines)[LINES_PER_SECOND][1] == "20 more operations were denied"


def test_in_a_dry_run_a_denial_would_be_one(lines: pytest.LogCaptureFixture) -> None:
    now = 0
    log = AuthorizerLog(lambda: now, dry_run=True)
    for _ in range(LINES_PER_SECOND + 1):
        log.denied(Client(), Op.READ, TOPIC, "t", NO, False)
    now = 1000
    log.denied(Client(), Op.READ, TOPIC, "t", NO, False)
    texts = [text for _, text in told(lines)]
    assert texts[0].startswith("Principal = User:alice would be Denied operation = READ from host = 10.0.0.7 on resource = ")
    assert texts[LINES_PER_SECOND] == "1 more operations would be denied"
    assert " is Allowed " in line(Client(), Op.READ, TOPIC, "t", Decision(True, Rule.ALLOW), dry_run=True)


def test_every_api_that_is_served_has_a_name() -> None:
    for key in NodeWorld().broker.apis:
        client = Client()
        client.api_key = ApiKey(key)
        assert re.search(r" for request = [A-Z][A-Za-z]+ with ", line(client, Op.READ, TOPIC, "t", NO)), key
