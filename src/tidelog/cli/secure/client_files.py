"""The settings of a client with a user and a password, as the files that clients read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.cli.secure.node_settings import MECHANISM
from tidelog.config.properties import parse, serialize

JAVA, LIBRDKAFKA, PYTHON = "admin.properties", "admin.conf", "admin.json"
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class Login:
    """A user of the cluster, and how to reach it. ``authority``: the certificate to trust, in PEM."""

    bootstrap: str
    user: str
    password: str = field(repr=False)
    authority: str


def properties_text(values: Mapping[str, str]) -> str:
    """A ``.properties`` file, with escapes only in the lines that would be read differently without."""
    lines = []
    for name, value in values.items():
        plain = f"{name}={value}\n"
        lines.append(plain if parse(plain) == {name: value} else serialize({name: value}))
    return "".join(lines)


def java_file(login: Login) -> str:
    """For Java's clients, Kafka's tools and those of tidelog: nothing beside this file is needed."""
    return properties_text(
        {
            "bootstrap.servers": login.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{_MODULE} required username="{login.user}" password="{login.password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": login.authority,
        }
    )


def librdkafka_file(login: Login, authority_path: str) -> str:
    """For ``kcat -F`` and other programs on librdkafka that read a file: such files have no room for a certificate."""
    values = {**_librdkafka(login), "ssl.ca.location": authority_path}
    return "".join(f"{name}={value}\n" for name, value in values.items())


def python_file(login: Login) -> str:
    """A JSON object for confluent-kafka in Python, and for other languages on librdkafka."""
    return json.dumps({**_librdkafka(login), "ssl.ca.pem": login.authority}, indent=1) + "\n"


def _librdkafka(login: Login) -> dict[str, str]:
    return {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": MECHANISM,
        "sasl.username": login.user,
        "sasl.password": login.password,
    }
