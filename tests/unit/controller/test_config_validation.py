import pytest

from tidelog.config.resolve import BrokerConfig
from tidelog.controller.config_validation import OptionRules
from tidelog.metadata.image import EMPTY_IMAGE
from tidelog.model.errors import ErrorCode

RULES = OptionRules(BrokerConfig({"log.retention.ms": "12345"}))
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32


@pytest.mark.parametrize(
    ("resource", "settings"),
    [
        ((TOPIC, "t"), {"retention.ms": "-1", "cleanup.policy": "compact,delete"}),
        ((BROKER, "1"), {"log.cleaner.threads": "2"}),
        ((BROKER, ""), {"log.cleaner.threads": "2"}),
        ((BROKER, "1"), {"some.plugins.setting": "x"}),
        ((BROKER, ""), {"listener.name.external.max.connections": "2147483647"}),
        ((BROKER, "2"), {"listener.name.external.max.connection.creation.rate": "1"}),
        ((GROUP, "g"), {"consumer.session.timeout.ms": "50000"}),
    ],
)
def test_settings_that_hold_are_let_through(resource: tuple[int, str], settings: dict[str, str]) -> None:
    assert RULES.problem(*resource, settings) is None


@pytest.mark.parametrize(
    ("resource", "settings", "code", "says"),
    [
        ((TOPIC, "t"), {"retention.ms": "x"}, ErrorCode.INVALID_CONFIG, "retention.ms"),
        ((TOPIC, "t"), {"retention.millis": "1"}, ErrorCode.INVALID_CONFIG, "retention.millis"),
        ((BROKER, "1"), {"log.dirs": "/x"}, ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [log.dirs]"),
        (
            (BROKER, ""),
            {"listeners": "PLAINTEXT://:1"},
            ErrorCode.INVALID_REQUEST,
            "name the broker: listeners",
        ),
        ((BROKER, "2"), {"ssl.truststore.type": "PKCS12"}, ErrorCode.INVALID_REQUEST, "one listener at a time"),
        ((BROKER, "2"), {"listener.name.a.max.connections": "0"}, ErrorCode.INVALID_REQUEST, "a whole number from 1"),
        ((BROKER, ""), {"listener.name.a.max.connection.creation.rate": "x"}, ErrorCode.INVALID_REQUEST, "a whole number from 1"),
        ((BROKER, "1"), {"log.cleaner.threads": "-1"}, ErrorCode.INVALID_REQUEST, "log.cleaner.threads"),
        ((GROUP, "g"), {"nonsense": "1"}, ErrorCode.INVALID_CONFIG, "Unknown group config name: nonsense"),
        ((METRICS, "m"), {"nonsense": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nonsense"),
    ],
)
def test_settings_that_do_not_hold_are_named(
    resource: tuple[int, str], settings: dict[str, str], code: ErrorCode, says: str
) -> None:
    problem = RULES.problem(*resource, settings)
    assert problem is not None
    assert problem[0] == code
    assert says in problem[1]


def test_lists_and_their_defaults_come_from_the_table() -> None:
    assert RULES.is_list(TOPIC, "cleanup.policy")
    assert not RULES.is_list(TOPIC, "retention.ms")
    assert not RULES.is_list(TOPIC, "unknown")
    assert RULES.default(TOPIC, "cleanup.policy") == "delete"
    assert RULES.default(TOPIC, "unknown") == ""


def test_a_new_topic_is_shown_all_its_settings_with_their_sources() -> None:
    rows = {row.name: row for row in RULES.topic_rows({"cleanup.policy": "delete"}, EMPTY_IMAGE)}
    assert (rows["cleanup.policy"].value, rows["cleanup.policy"].config_source) == ("delete", 1)
    assert (rows["retention.ms"].value, rows["retention.ms"].config_source) == ("12345", 4)
    assert (rows["segment.bytes"].value, rows["segment.bytes"].config_source) == ("1073741824", 5)
    assert not rows["segment.bytes"].read_only
