"""Settings that no table has."""

from __future__ import annotations

import pytest

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.config.unknown_settings import AUTHORIZER_SETTINGS, REMOVED, explain_unknown, unknown_topic_option
from tidelog.model.errors import ConfigError


def test_what_is_explained_is_in_no_table() -> None:
    assert not (set(REMOVED) | AUTHORIZER_SETTINGS) & set(BROKER_OPTIONS)


def test_a_removed_option_is_explained_and_not_taken_for_a_typo() -> None:
    assert explain_unknown("port") == "port is ignored: listeners takes its place."
    assert "Did you mean" not in explain_unknown("broker.id.generation.enable")


def test_a_typo_gets_the_nearest_name_and_nonsense_none() -> None:
    assert explain_unknown("auto.create.topic.enable").endswith("Did you mean auto.create.topics.enable?")
    assert explain_unknown("xyzzy").endswith("is ignored.")
    assert explain_unknown("super.user").endswith("Did you mean super.users?")
    near = "Did you mean listener.name.nodes.ssl.client.auth?"
    assert explain_unknown("listener.name.nodes.ssl.client.auht").endswith(near)
    assert explain_unknown("listener.name.nodes").endswith("or plugin.")


@pytest.mark.parametrize(
    "option",
    [
        "sasl.server.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.expected.audience",
    ],
)
def test_what_a_listener_reads_for_itself_is_not_said_to_be_ignored(option: str) -> None:
    assert explain_unknown(f"listener.name.out.{option}") == explain_unknown(f"listener.name.out.oauthbearer.{option}") == ""
    assert explain_unknown("listener.name.out.sasl.oauthbearer.assertion.file").endswith("for a single listener or plugin.")


def test_an_unknown_name_of_ours_is_an_error() -> None:
    with pytest.raises(ConfigError):
        explain_unknown("tidelog.colour")


def test_an_unknown_topic_option_gets_the_nearest_name() -> None:
    assert str(unknown_topic_option("cleanup.polcy", TOPIC_OPTIONS)).endswith("Did you mean cleanup.policy?")
