"""The command that adds a missing ACL."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.client.settings import parse_settings
from tidelog.spark.rights import READ, acl_needed

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}


@pytest.mark.parametrize(
    ("given", "principal"),
    [
        ({}, "User:NAME"),
        ({**LOGIN, "sasl.username": "ann", "sasl.password": "x"}, "User:ann"),
        ({**LOGIN, "sasl.jaas.config": f'{SCRAM} username="ann" password="x";'}, "User:ann"),
        # The id of a delegation token is not its owner's name, and a file with a token is not looked into.
        ({**LOGIN, "sasl.jaas.config": f'{SCRAM} username="an-id" password="aGk=" tokenauth="true";'}, "User:NAME"),
        (
            {**LOGIN, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "file:///token"},
            "User:NAME",
        ),
    ],
)
def test_the_principal_is_named_where_the_settings_show_it(given: dict[str, Any], principal: str) -> None:
    settings = parse_settings({"bootstrap.servers": "localhost:1", **given})
    wanted = f"Add an ACL: kafka-acls --add --allow-principal {principal} --operation Read --topic rides"
    assert acl_needed(settings, READ, "rides") == wanted
