"""A node's settings: layers, fallbacks, what starts and what does not."""

from __future__ import annotations

import pytest

from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.listeners import EndPoint
from tidelog.config.properties import parse
from tidelog.config.resolve import BrokerConfig
from tidelog.config.topic_config import TopicConfig
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.model.errors import ConfigError

COMBINED = """
# One node that is broker and controller, in the way a fresh Kafka 4.3 is set up.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/lib/data
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
PLAIN = EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)


def problems(**properties: str) -> str:
    """What a combined node with these changes (dots as double underscores) refuses to start with."""
    changed = parse(COMBINED) | {name.replace("__", "."): value for name, value in properties.items()}
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties(changed)
    return str(refused.value)


def test_a_file_with_only_a_broker_id_starts() -> None:
    config = BrokerConfig.from_properties({"broker.id": "4"})
    assert (config.node_id, config.broker_id) == (4, 4)


def test_the_usual_combined_file_starts_and_warns_only_of_what_has_no_effect() -> None:
    config = BrokerConfig.from_properties(parse(COMBINED))
    assert not config.embedded
    assert [point.port for point in config.controller_endpoints] == [9093]
    assert config.advertised({}, "host") == (PLAIN,)
    assert config.log_dirs == ("/var/lib/data",)
    assert config.num_recovery_threads_per_data_dir == 1
    assert not [warning for warning in config.warnings if "has no effect" not in warning]
    assert not [warning for warning in config.warnings if warning.startswith("num.io.threads")], (
        "8 is the default: nothing was asked"
    )


def test_a_topic_follows_the_broker_except_where_it_has_a_word_of_its_own() -> None:
    config = BrokerConfig.from_properties({"message.max.bytes": "5000", "log.cleanup.policy": "compact"})
    topic = config.topic_config({"retention.ms": "9", "cleanup.policy": "compact, delete"})
    assert (topic.max_message_bytes, topic.retention_ms) == (5000, 9)
    assert topic.cleanup_policy == {"compact", "delete"}
    assert topic.is_compacted
    assert topic.deletes
    assert not config.topic_config({}).deletes
    assert config.topic_config({"message.timestamp.type": "LogAppendTime"}).log_append_time


def test_equal_settings_share_one_object() -> None:
    config = BrokerConfig.from_properties({})
    assert config.topic_config({"a": "b"} and {"retention.ms": "9"}) is config.topic_config({"retention.ms": "9"})


def test_a_topic_setting_that_does_not_hold_is_named() -> None:
    config = BrokerConfig.from_properties({})
    with pytest.raises(ConfigError, match=r"Unknown topic config name: retention.mss. Did you mean retention.ms\?"):
        config.topic_config({"retention.mss": "1"})
    with pytest.raises(ConfigError, match=r"segment.bytes is '1', but must be at least 1048576"):
        config.topic_config({"segment.bytes": "1"})


def test_dynamic_settings_lie_over_the_file_and_change_the_object_in_place() -> None:
    config = BrokerConfig.from_properties({"message.max.bytes": "1000", "log.retention.hours": "2"})
    before = config.topic_config({})
    changed = config.apply_dynamic({"message.max.bytes": "2000", "log.retention.ms": "5"}, {"message.max.bytes": "3000"})
    assert changed == {"message.max.bytes", "log.retention.ms"}
    assert (config.message_max_bytes, config.log_retention_ms) == (3000, 5)
    assert (before.max_message_bytes, config.topic_config({}).max_message_bytes) == (1000, 3000)
    assert config.apply_dynamic({}, {}) == changed
    assert (config.message_max_bytes, config.log_retention_ms) == (1000, 7_200_000)


def test_a_dynamic_setting_that_does_not_hold_changes_nothing() -> None:
    config = BrokerConfig.from_properties({})
    with pytest.raises(ConfigError):
        config.apply_dynamic({"message.max.bytes": "2000", "log.segment.bytes": "1"}, {})
    assert config.message_max_bytes == 1048588
    assert config.dynamic_default == {}


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        ({"log.retention.ms": "0"}, "log.retention.ms is 0"),
        ({"principal.builder.class": "com.example.Mine"}, "principal.builder.class is set"),
        ({"listener.security.protocol.map": "PLAINTEXT:SASL_SSL"}, "listener.security.protocol.map cannot be changed while"),
        ({"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"}, "must not be greater"),
    ],
)
def test_a_dynamic_setting_that_would_have_stopped_the_start_is_not_taken_over(layer: dict[str, str], said: str) -> None:
    config = BrokerConfig.from_properties({})
    before = dict(config.__dict__)
    with pytest.raises(ConfigError, match=said):
        config.apply_dynamic({}, layer)
    assert config.__dict__ == before


def test_settings_that_a_change_could_not_make_are_taken_over_once_they_are_stored() -> None:
    """The change was allowed by an older version, or by a broker whose file keeps records longer."""
    config = BrokerConfig.from_properties({"log.retention.ms": "3600000"})
    stored = {"log.local.retention.ms": "86400000", "log.cleaner.threads": "0", "max.connections": "7"}
    with pytest.raises(ConfigError, match=r"log.cleaner.threads is 0(.|\n)*log.local.retention.ms is 86400000"):
        config.plan_dynamic(stored, {})
    config.apply_dynamic(stored, {})
    assert config.max_connections == 7
    assert config.apply(config.plan_dynamic({**stored, "max.connections": "8"}, {})) == {"max.connections"}


def test_a_plan_changes_nothing_until_it_is_applied() -> None:
    config = BrokerConfig.from_properties({"min.insync.replicas": "2"})
    plan = config.plan_dynamic({"min.insync.replicas": "3"}, {})
    assert (config.min_insync_replicas, config.dynamic_default) == (2, {})
    assert config.apply(plan) == {"min.insync.replicas"}
    assert (config.min_insync_replicas, config.dynamic_default) == (3, {"min.insync.replicas": "3"})


def test_a_dynamic_setting_that_repeats_the_file_is_taken() -> None:
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:9092"})
    assert config.apply_dynamic({}, {"listeners": "PLAINTEXT://:9092"}) == frozenset()


def test_a_dynamic_word_on_what_cannot_change_while_running_is_not_heard() -> None:
    config = BrokerConfig.from_properties({})
    assert config.apply_dynamic({}, {"num.partitions": "7"}) == frozenset()
    assert config.num_partitions == 1


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "authorizer.class.name is com.example.Mine"),
        ({"principal.builder.class": "com.example.Mine"}, "principal.builder.class is set"),
        ({"create.topic.policy.class.name": "com.example.Mine"}, "create.topic.policy.class.name is set"),
        ({"client.quota.callback.class": "com.example.Mine"}, "client.quota.callback.class is set"),
        ({"remote.log.storage.system.enable": "true"}, "remote.log.storage.system.enable is set"),
        ({"listeners": "SSL://:9092,CONTROLLER://:9093"}, "listener SSL speaks SSL, but has no certificate"),
        ({"listeners": "SASL_SSL://:9092,CONTROLLER://:9093"}, "listener SASL_SSL speaks SASL_SSL, but has no certificate"),
        ({"listeners": "SSL://:9092,CONTROLLER://:9093", "ssl.engine.factory.class": "a.B"}, "names a Java class"),
        ({"listeners": "SASL_PLAINTEXT://:9092,CONTROLLER://:9093"}, "listener SASL_PLAINTEXT offers GSSAPI"),
        ({"listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT"}, "CONTROLLER speaks SSL, but has no"),
    ],
)
def test_what_would_leave_the_node_open_in_silence_stops_the_start(properties: dict[str, str], named: str) -> None:
    text = problems(**{name.replace(".", "__"): value for name, value in properties.items()})
    assert named in text


def test_security_settings_that_belong_to_no_listener_are_warned_of() -> None:
    config = BrokerConfig.from_properties(
        {"super.users": "User:me", "ssl.keystore.location": "/k", "listener.name.plaintext.ssl.client.auth": "required"}
    )
    assert len(config.warnings) == 3
    assert any("everyone may do everything" in warning for warning in config.warnings)


def test_the_settings_of_an_authorizer_have_an_effect_beside_it() -> None:
    given = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:me", "allow.everyone.if.no.acl.found": "true"}
    assert BrokerConfig.from_properties(given).warnings == ()


def test_an_authorizer_left_empty_and_a_default_principal_builder_say_nothing() -> None:
    default = BROKER_OPTIONS["principal.builder.class"].default
    assert isinstance(default, str)
    assert BrokerConfig.from_properties({"authorizer.class.name": "", "principal.builder.class": default}).warnings == ()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"broker__id": "2"}, "node.id is 1 and broker.id is 2"),
        (
            {"process__roles": "broker", "controller__quorum__voters": "", "controller__quorum__bootstrap__servers": ""},
            "nothing says where the controllers are",
        ),
        ({"process__roles": "broker", "controller__quorum__voters": "1@localhost:9093"}, "names this node, 1, but"),
        ({"process__roles": "broker", "controller__quorum__voters": "2@localhost:9093"}, "listeners holds CONTROLLER"),
        ({"process__roles": "brokr"}, "any of broker, controller"),
        ({"controller__listener__names": ""}, "controller.listener.names is not set"),
        ({"controller__listener__names": "OTHER"}, "of which listeners holds none"),
        ({"controller__quorum__voters": "2@localhost:9093"}, "does not name this node, 1"),
        ({"listeners": "CONTROLLER://:9093"}, "no listener for clients"),
        ({"advertised__listeners": "PLAINTEXT://0.0.0.0:9092"}, "no address for a client"),
        ({"advertised__listeners": "SSL://host:9092"}, "which is not in listeners"),
        ({"advertised__listeners": "CONTROLLER://host:9093"}, "advertised.listeners holds no listener for clients"),
        ({"inter__broker__listener__name": "CONTROLLER"}, "not among the listeners for clients"),
        ({"security__inter__broker__protocol": "PLAINTEXT"}, "are both set"),
        ({"log__retention__ms": "0"}, "must be -1"),
        ({"socket__send__buffer__bytes": "0"}, "socket.send.buffer.bytes is 0"),
        ({"log__dirs": ""}, "log.dirs is empty"),
        ({"group__min__session__timeout__ms": "9999999"}, "must not be greater than group.max.session.timeout.ms"),
        ({"tidelog__htp__listener": "x"}, "Did you mean tidelog.http.listener"),
        ({"tidelog__log__format": "xml"}, "one of text, json"),
    ],
)
def test_settings_that_do_not_fit_together_stop_the_start(properties: dict[str, str], named: str) -> None:
    assert named in problems(**properties)


def test_all_problems_are_told_at_once() -> None:
    text = problems(authorizer__class__name="x", log__retention__ms="0", broker__id="2")
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log.retention.mss", "Did you mean log.retention.ms?"),
        ("advertised.listener", "Did you mean advertised.listeners?"),
        ("zookeeper.connect", "there is no ZooKeeper"),
        ("broker.id.generation.enable", "set node.id"),
        ("inter.broker.protocol.version", "feature levels"),
        ("log.message.format.version", "one message format"),
        ("rsm.config.bucket", "not acted on for a single listener or plugin"),
        ("completely.different.thing", "is ignored"),
    ],
)
def test_a_setting_that_no_broker_has_is_ignored_with_a_reason_or_the_nearest_name(name: str, said: str) -> None:
    (warning,) = BrokerConfig.from_properties({name: "1"}).warnings
    assert name in warning
    assert said in warning


def test_topic_config_has_a_field_for_every_topic_option() -> None:
    assert set(TopicConfig.__dataclass_fields__) == {option.attribute for option in TOPIC_OPTIONS.values()}


def test_the_object_shows_no_values() -> None:
    assert repr(BrokerConfig.from_properties({"ssl.key.password": "s3cret"})) == "BrokerConfig(node_id=1, 6 set)"


def test_an_audit_without_an_authorizer_is_warned_of() -> None:
    (warning,) = BrokerConfig.from_properties({"tidelog.audit.file": "audit.jsonl"}).warnings
    assert warning.startswith("The audit has logins only")
    given = {"tidelog.audit.topic": "__audit", "authorizer.class.name": STANDARD_AUTHORIZER}
    assert BrokerConfig.from_properties(given).warnings == ()
