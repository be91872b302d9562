"""The administrator's files: each is read back by what reads it, and is complete."""

from __future__ import annotations

import json
from pathlib import Path

import confluent_kafka

from tidelog.cli.client_settings import to_librdkafka
from tidelog.cli.secure.client_files import Login, java_file, librdkafka_file, properties_text, python_file
from tidelog.client.settings import parse_settings
from tidelog.config.properties import parse
from tidelog.security.authority import Authority

LOGIN = Login("a:1,b:2", "root", "p-w_d", Authority.made("house", 1_700_000_000_000, 3650).certificate)


def test_javas_file_is_all_that_our_own_clients_need() -> None:
    found = parse_settings(parse(java_file(LOGIN)))
    assert found.bootstrap == (("a", 1), ("b", 2))
    assert found.sasl is not None
    assert (found.sasl.mechanism, found.sasl.username, found.sasl.password) == ("SCRAM-SHA-512", "root", "p-w_d")
    assert found.tls is not None
    assert found.tls.ca_text == LOGIN.authority
    assert found.tls.verify_hostname


def test_librdkafka_takes_each_file(tmp_path: Path) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_text(LOGIN.authority)
    for settings in (
        parse(librdkafka_file(LOGIN, str(authority))),
        json.loads(python_file(LOGIN)),
        to_librdkafka(parse(java_file(LOGIN))),
    ):
        assert (settings["sasl.username"], settings["sasl.password"]) == ("root", "p-w_d")
        confluent_kafka.Producer(settings)


def test_a_password_is_in_no_representation() -> None:
    assert "p-w_d" not in repr(LOGIN)


def test_lines_are_escaped_only_where_they_must_be() -> None:
    values = {"listeners": "A://b:1", "path": "C:\\x", "led": " x", "two": "a\nb"}
    text = properties_text(values)
    assert "listeners=A://b:1\n" in text
    assert parse(text) == values
