"""What a broker refuses of its own dynamic settings; Apache Kafka's answers are in broker/apis/topics/test_dynamic_configs.py."""

from __future__ import annotations

import pytest

from tidelog.config.dynamic_changes import check_change
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

CONFIG = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:9092", "listener.name.plaintext.num.network.threads": "5"})


def problem(settings: dict[str, str], before: dict[str, str] | None = None, *, cluster_wide: bool = False) -> str:
    try:
        check_change(CONFIG, settings, before or {}, cluster_wide=cluster_wide)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"listener.name.plaintext.ssl.client.auth": "None"}, "listener.name.plaintext.ssl.client.auth is 'None'"),
        ({"listener.name.x.message.max.bytes": "1.5"}, "listener.name.x.message.max.bytes is '1.5'"),
        ({"listener.name.x.listeners": " "}, "must be a list of addresses"),
        ({"listener.name.plaintext.num.network.threads": "11"}, "double the current value 5"),
        ({"listener.name.plaintext.num.network.threads": "1"}, "half the current value 5"),
        ({"leader.replication.throttled.rate": "-1"}, "at least 0"),
        ({"max.connections": "0"}, "shuts every client out"),
        ({"max.connections.per.ip.overrides": "a:1, [::1]:4"}, "holds '[::1]', which is no host"),
        ({"metric.reporters": "com.example.Reporter"}, "a Java class, which cannot be loaded: leave org.apache.kafka"),
        ({"principal.builder.class": ""}, "a Java class, which cannot be loaded"),
        ({"ssl.engine.factory.class": "x"}, "which cannot be loaded: remove it"),
    ],
)
def test_what_the_broker_could_not_have_is_named(settings: dict[str, str], said: str) -> None:
    assert said in problem(settings)
    assert problem(settings, before=settings) == ""  # stored before: it is in no other change's way


@pytest.mark.parametrize(
    "settings",
    [
        {"listener.name.plaintext.num.network.threads": "10"},
        {"listener.name.other.num.network.threads": "1000"},
        {"listener.name.plaintext.no.such.setting": "anything"},
        {"max.connections.per.ip.overrides": "a:1, ::1:4"},
        {"metric.reporters": ""},
        {"max.connections": "1"},
    ],
)
def test_the_rest_is_taken(settings: dict[str, str]) -> None:
    assert problem(settings) == ""


def test_settings_of_a_listener_have_no_default_for_all_brokers_but_bounds_and_threads() -> None:
    settings = {"listener.name.a.ssl.keystore.location": "/x", "listener.name.a.max.connections": "5"}
    assert "name the broker: listener.name.a.ssl.keystore.location" in problem(settings, cluster_wide=True)
    assert problem({"listener.name.a.max.connections": "5"}, cluster_wide=True) == ""
    assert problem(settings) == ""


def test_the_threads_of_a_listener_are_compared_with_the_value_in_force() -> None:
    name = "listener.name.plaintext.num.network.threads"
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:9092"})
    config.apply_dynamic({name: "6"}, {})
    check_change(config, {name: "12"}, {}, cluster_wide=False)
    with pytest.raises(ConfigError, match="double the current value 6"):
        check_change(config, {name: "13"}, {}, cluster_wide=False)
    check_change(config, {name: "4"}, {name: "abc"}, cluster_wide=False)  # stored before such values were looked at


@pytest.mark.parametrize("name", ["sasl.jaas.config", "listener.name.plaintext.plain.sasl.jaas.config"])
@pytest.mark.parametrize(
    "module", ["com.sun.security.auth.module.JndiLoginModule", "com.sun.security.auth.module.LdapLoginModule", "x.Y"]
)
def test_a_login_module_of_the_clients_choice_is_refused(name: str, module: str) -> None:
    """CVE-2023-25194, CVE-2025-27818, CVE-2025-27819: such a module was loaded."""
    said = problem({name: f'{module} required user="canary";'})
    assert f"{module} is not supported" in said
    assert "canary" not in said
    assert problem({name: f'{PLAIN_MODULE} required username="u" password="p";'}) == ""
