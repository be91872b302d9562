"""delegation-tokens: its flags, and a node with users from whom tokens come."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.running_node import running_node
from tidelog.cli.tools.delegation_tokens import _date, command
from tidelog.cli.tools.topics import command as topics

JAAS = "org.apache.kafka.common.security"
USERS = f'{JAAS}.plain.PlainLoginModule required username="ann" password="a" user_ann="a" user_bob="b";'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.plaintext.plain.sasl.jaas.config": USERS,
        "delegation.token.secret.key": "key",
    }
    with running_node(tmp_path_factory.mktemp("node"), **settings) as address:
        yield address


def login(tmp_path: Path, user: str) -> str:
    file = tmp_path / f"{user}.properties"
    password = f"sasl.username={user}\nsasl.password={user[0]}\n"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{password}")
    return str(file)


def by_token(tmp_path: Path, token: dict[str, str]) -> str:
    file = tmp_path / "token.properties"
    jaas = f'{JAAS}.scram.ScramLoginModule required username="{token["tokenId"]}" password="{token["hmac"]}" tokenauth=true;'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={jaas}\n")
    return str(file)


def run(server: str, words: str, config: str | None = None) -> Result:
    more = ["--command-config", config] if config else []
    return CliRunner().invoke(command, ["--bootstrap-server", server, *more, *shlex.split(words)])


def test_a_token_is_made_listed_used_renewed_and_ended(server: str, tmp_path: Path) -> None:
    ann, bob = login(tmp_path, "ann"), login(tmp_path, "bob")
    made = run(server, "--create --renewer-principal User:bob --max-life-time-period 60000", ann)
    first, _, titles, _, row = made.stdout.splitlines()
    token_id = first.removeprefix("Created delegation token with tokenId : ")
    assert titles.split() == ["TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"]
    shown, token_hmac, owner, requester, renewers, *dates = row.split()
    assert (shown, owner, requester, renewers) == (token_id, "User:ann", "User:ann", "[User:bob]")
    assert len(dates) == 3

    (listed,) = json.loads(run(server, "--describe --output json", bob).stdout)
    assert (listed["tokenId"], listed["hmac"], listed["renewers"]) == (token_id, token_hmac, ["User:bob"])
    assert listed["maxMs"] - listed["issuedMs"] == 60_000
    assert run(server, "--describe --owner-principal User:eve", bob).stdout.startswith("Total number of tokens : 0\n")

    config = by_token(tmp_path, listed)
    created = CliRunner().invoke(topics, ["--bootstrap-server", server, "--command-config", config, "--create", "--topic", "t"])
    assert created.stdout == "Created topic t.\n"
    refused = run(server, "--create", config)
    assert refused.exit_code == 1
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused.stderr
    assert token_hmac not in refused.stderr

    renewed = json.loads(run(server, f"--renew --hmac {token_hmac} --output json", bob).stdout)
    assert renewed["expiresMs"] == listed["maxMs"]
    ended = run(server, f"--expire --hmac {token_hmac} --expiry-time-period -1", ann)
    assert ended.stdout.startswith("Completed expire operation. Expiry date : ")
    again = run(server, f"--renew --hmac {token_hmac} --renew-time-period 5", ann)
    assert (again.exit_code, "DELEGATION_TOKEN_NOT_FOUND" in again.stderr) == (1, True)
    assert token_hmac not in again.output
    gone = CliRunner().invoke(topics, ["--bootstrap-server", server, "--command-config", config, "--list"])
    assert gone.exit_code == 1
    assert token_hmac not in gone.output


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--create --describe",
        "--create --hmac eA==",
        "--create --renew-time-period 5",
        "--create --owner-principal User:a --owner-principal User:b",
        "--renew --renew-time-period 5",
        "--renew --hmac eA== --owner-principal User:a",
        "--renew --hmac !",
        "--expire --hmac eA==",
        "--expire --expiry-time-period 5",
        "--describe --max-life-time-period 5",
        "--describe --renewer-principal User:a",
    ],
)
def test_flags_that_make_no_command(words: str) -> None:
    assert run("127.0.0.1:1", words).exit_code == 2


def test_a_date_that_no_calendar_has() -> None:
    assert _date(2**63 - 1) == "-"
    assert len(_date(1_700_000_000_000)) == len("2023-11-14T22:13")
