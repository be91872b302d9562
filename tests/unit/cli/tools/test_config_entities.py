"""Whose settings ``configs`` is about, by its flags."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from tidelog.cli.tools import config_entities
from tidelog.cli.tools.configs import KINDS


def parsed(*flags: str) -> list[tuple[str, str | None]] | str:
    """Kinds and names, or why the flags make none."""
    found: list[tuple[str, str | None]] = []

    @click.command()
    @config_entities.options
    def command(**given: Any) -> None:
        found.extend((each.kind, each.name) for each in config_entities.named(given, KINDS))

    result = CliRunner().invoke(command, flags)
    assert result.exit_code in (0, 2), result.exception
    return found if result.exit_code == 0 else result.output


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--entity-type topics --entity-name t", [("topics", "t")]),
        ("--entity-type users", [("users", None)]),
        ("--entity-type brokers --entity-default", [("brokers", "")]),
        ("--entity-type users --entity-type clients", [("users", None), ("clients", None)]),
        ("--entity-type users --entity-name u --entity-type clients --entity-default", [("users", "u"), ("clients", "")]),
        ("--entity-type users --entity-default --entity-type clients --entity-name c", [("users", ""), ("clients", "c")]),
        ("--entity-type clients --entity-type users --entity-name c", [("clients", "c"), ("users", None)]),
        ("--entity-type clients --entity-default --entity-type users --entity-default", [("clients", ""), ("users", "")]),
        ("--user u", [("users", "u")]),
        ("--ip-defaults", [("ips", "")]),
        ("--broker-defaults", [("brokers", "")]),
        ("--user u --client c", [("clients", "c"), ("users", "u")]),
        ("--client-defaults --user u", [("users", "u"), ("clients", "")]),
    ],
)
def test_names_belong_to_types_in_the_order_of_the_flags(flags: str, expected: list[tuple[str, str | None]]) -> None:
    assert parsed(*flags.split()) == expected


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("", "Say whose settings with --entity-type"),
        ("--entity-name t", "--entity-name needs an --entity-type"),
        ("--entity-type planets", "--entity-type planets does not exist here"),
        ("--entity-type users --entity-name a --entity-name b", "more entity names than entity types"),
        ("--entity-type users --entity-default --entity-default", "more entity names than entity types"),
        ("--entity-type users --entity-type users", "Duplicate entity type(s) specified: users"),
        ("--client c --client-defaults", "Duplicate entity type(s) specified: clients"),
        ("--ip 10.1.2.3 --user u", "Only 'users' and 'clients' entity types may be specified together"),
        ("--topic t --broker 1", "Only 'users' and 'clients' entity types may be specified together"),
        ("--user u --entity-type clients --entity-name c", "do not go with their short forms"),
        ("--user u --entity-default", "do not go with their short forms"),
        ("--entity-type topics --entity-default", "--entity-default is there for"),
    ],
)
def test_flags_that_name_nobody_or_too_many_are_refused(flags: str, says: str) -> None:
    output = parsed(*flags.split())
    assert isinstance(output, str) and says in output
