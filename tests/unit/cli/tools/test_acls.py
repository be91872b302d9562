"""acls: added, listed, removed, explained, against a node with an authorizer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.running_node import running_node
from tidelog.cli.tools.acls import command
from tidelog.config.authorizer import STANDARD_AUTHORIZER

ON = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_node(tmp_path_factory.mktemp("node"), **ON) as address:
        yield address


def run(server: str, words: str, typed: str = "") -> Result:
    return CliRunner().invoke(command, ["--bootstrap-server", server, *shlex.split(words)], input=typed)


@pytest.fixture(autouse=True)
def empty(server: str) -> None:
    for flag in ("--topic", "--group", "--transactional-id"):
        assert run(server, f"--remove --force {flag} x --resource-pattern-type any").exit_code == 0


def test_acls_are_added_listed_and_removed_in_kafkas_lines(server: str) -> None:
    pattern = "ResourcePattern(resourceType=TOPIC, name=x, patternType=LITERAL)"
    rules = [
        f"\t(principal=User:{name}, host=*, operation=READ, permissionType={permission})\n"
        for name, permission in (("alice", "ALLOW"), ("bob", "DENY"))
    ]
    words = "--add --topic x --operation read --allow-principal User:alice --deny-principal User:bob"
    assert run(server, words).stdout == f"Adding ACLs for resource `{pattern}`: \n {''.join(rules)}\n"
    again = run(server, words).stdout
    assert again.splitlines()[0] == f"Acl (pattern={pattern}, entry={rules[0].strip()}) already exists."
    assert "Adding" not in again
    assert run(server, "--list --topic x").stdout == f"Current ACLs for resource `{pattern}`:\n{''.join(rules)}\n"
    alone = run(server, "--list --principal User:bob --topic x").stdout
    assert alone == f"ACLs for principal `User:bob`\nCurrent ACLs for resource `{pattern}`:\n{rules[1]}\n"
    assert run(server, "--remove --topic x --operation Read --deny-principal User:bob", "n\n").exit_code == 0
    assert "User:bob" in run(server, "--list --topic x").stdout
    asked = run(server, "--remove --topic x --operation Read --deny-principal User:bob", "y\n")
    assert asked.stdout.splitlines()[0] == f"Remove these ACLs of `{pattern}`? (y/n)"
    (row,) = json.loads(run(server, "--list --topic x --output json").stdout)
    assert row["principal"] == "User:alice"
    assert run(server, "--remove --force --topic x").stdout == ""
    assert run(server, "--list --topic x").stdout == ""


def test_what_applies_to_a_name_is_found_by_match(server: str) -> None:
    run(server, "--add --topic x --resource-pattern-type prefixed --allow-principal User:a --operation All")
    assert run(server, "--list --topic xyz").stdout == ""
    assert "name=x, patternType=PREFIXED" in run(server, "--list --topic xyz --resource-pattern-type match").stdout
    assert "name=x, patternType=PREFIXED" in run(server, "--list").stdout


def test_a_consumer_and_a_transactional_producer_in_one_command(server: str) -> None:
    words = "--add --producer --consumer --topic x --group x --transactional-id x --allow-principal User:a"
    assert run(server, words).exit_code == 0
    rows = json.loads(run(server, "--list --output json").stdout)
    found = {(row["resourceType"], row["operation"]) for row in rows if row["principal"] == "User:a"}
    topic = {("TOPIC", operation) for operation in ("READ", "WRITE", "DESCRIBE", "CREATE")}
    assert found == topic | {("GROUP", "READ"), ("TRANSACTIONAL_ID", "WRITE"), ("TRANSACTIONAL_ID", "DESCRIBE")}


def test_why_is_answered_and_the_missing_acl_works_when_it_is_pasted(server: str) -> None:
    words = ["explain", "User:carol", "READ", "topic:x", "--bootstrap-server", server]
    first = CliRunner().invoke(command, words)
    lines = first.stdout.splitlines()
    assert lines[0].startswith("User:carol may not Read topic x.")
    assert lines[-1].startswith("If User:carol is in super.users"), "it is set, and hidden"
    missing = shlex.split(lines[1])
    assert missing[:2] == ["tidelog", "acls"]
    assert CliRunner().invoke(command, missing[2:]).exit_code == 0
    assert run(server, "explain User:carol READ topic:x").stdout.startswith("User:carol may Read topic x.")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", "exactly one of --add"),
        ("--add --list", "exactly one of --add"),
        ("--add --allow-principal User:a", "at least one resource"),
        ("--add --topic x", "--allow-principal or --deny-principal"),
        ("--add --topic x --allow-principal User:a --resource-pattern-type match", "literal or prefixed"),
        ("--add --topic x --allow-principal User:a --principal User:b", "--principal belongs to --list"),
        ("--list --topic x --allow-principal User:a", "do not go together"),
        ("--add --producer --allow-principal User:a --group x", "--producer needs a --topic"),
        ("--add --producer --topic x --operation Read --allow-principal User:a", "do not go together"),
        ("--add --consumer --topic x --allow-principal User:a", "--consumer needs a --topic and a --group"),
        ("--add --consumer --topic x --group x --cluster --allow-principal User:a", "neither --cluster"),
        ("--add --idempotent --topic x --allow-principal User:a", "--idempotent belongs to --producer"),
    ],
)
def test_flags_that_do_not_go_together_are_a_usage_error(words: str, named: str) -> None:
    result = run("127.0.0.1:1", words)
    assert result.exit_code == 2
    assert named in result.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--add --topic x --allow-principal alice", "alice has no type"),
        ("--add --topic x --allow-principal User:a --operation Reed", "Reed is not an operation"),
        ("--add --group x --allow-principal User:a --operation Write", "group has these operations"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_connection_is_made(words: str, named: str) -> None:
    result = run("127.0.0.1:1", words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert named in result.stderr


def test_a_cluster_without_an_authorizer_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_node(tmp_path_factory.mktemp("open")) as address:
        result = run(address, "--list")
        assert result.exit_code == 1
        assert "SECURITY_DISABLED" in result.stderr
        assert "no authorizer" in run(address, "explain User:a Read topic:t").stdout


def test_the_acls_that_a_principal_needs_are_suggested(server: str, tmp_path: Path) -> None:
    done = {"type": "authorization", "time": "2026-01-01T00:00:00Z", "principal": "User:a", "host": "::1", "allowed": True}
    lines = [
        json.dumps(done | {"operation": operation, "resourceType": "TOPIC", "resourceName": name})
        for operation, name in (("READ", "x"), ("DESCRIBE", "x"), ("WRITE", "y"))
    ]
    (tmp_path / "audit.jsonl").write_text("\n".join(lines[:2]))
    run(server, "--add --topic x --allow-principal User:a --operation Create")
    result = CliRunner().invoke(
        command,
        ["suggest", "User:a", "--bootstrap-server", server, "--audit", str(tmp_path / "audit.jsonl"), "--audit", "-"],
        input=lines[2],
    )
    assert result.exit_code == 0, result.output
    add = f"tidelog acls --bootstrap-server {server} --add --allow-principal User:a"
    assert result.stdout.splitlines()[1:] == [
        f"{add} --operation Read --topic x",
        f"{add} --operation Write --topic y",
        "# These ACLs allowed nothing of it. To remove them:",
        f"# tidelog acls --bootstrap-server {server} --remove --allow-principal User:a --operation Create --topic x",
    ]
    assert run(server, shlex.join(shlex.split(result.stdout.splitlines()[1])[4:])).exit_code == 0
    offline = CliRunner().invoke(command, ["suggest", "User:a", "--audit", "-"], input=lines[2], env={"TIDELOG_BOOTSTRAP": ""})
    assert offline.stdout.splitlines()[1] == "tidelog acls --add --allow-principal User:a --operation Write --topic y"
    assert CliRunner().invoke(command, ["suggest", "a", "--audit", "-"], input="").exit_code == 1
