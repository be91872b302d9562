"""Several nodes whose listeners all ask for a login: PLAIN between controllers, SCRAM between brokers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.server.several_nodes import SeveralNodes
from tidelog.config.jaas import PLAIN_MODULE, SCRAM_MODULE
from tidelog.metadata.snapshot import scram_record
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.security.scram import ScramMechanism, credential_of, salted_password

SALT = b"0123456789abcdef"


def first_user(name: str, password: str) -> UserScramCredentialRecord:
    """What ``format --add-scram`` writes."""
    mechanism = ScramMechanism.SHA_256
    stored = credential_of(mechanism, salted_password(mechanism, password, SALT, 4096), SALT, 4096)
    return scram_record(name, mechanism, stored)


def secured_nodes(
    directory: Path, users: Mapping[str, str] | None = None, given: Mapping[str, str] | None = None, **settings: Any
) -> SeveralNodes:
    """Three combined nodes; ``users``: the passwords of more users, ``given``: more settings as they are written."""
    login = 'username="node" password="n0de-secret"'
    return SeveralNodes(
        directory,
        scram=[first_user("node", "n0de-secret"), *(first_user(*each) for each in (users or {}).items())],
        given={
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN_MODULE} required {login} user_node="n0de-secret";',
            "listener.name.plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required {login};",
            **(given or {}),
        },
        **settings,
    )
