"""Command-line tools by TLS and SASL, on an Apache Kafka node with listeners of every security protocol."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.java import JavaSide
from tests.interop.nodes import environment
from tests.interop.secured_apache import JAAS, Brokers, secured_apache

pytestmark = pytest.mark.interop

Tool = Callable[..., subprocess.CompletedProcess[str]]
SCRAM = f'sasl.jaas.config={JAAS}.scram.ScramLoginModule required username="me" password="secret";'
PLAIN = f'sasl.jaas.config={JAAS}.plain.PlainLoginModule required username="me" password="secret";'


@pytest.fixture(scope="module")
def apache(java: JavaSide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with secured_apache(java, tmp_path_factory.mktemp("tools")) as brokers:
        yield brokers


def tool(apache: Brokers, protocol: str, config: Path) -> Tool:
    """Runs a tool, the right server being the second of its list."""

    def run(name: str, *args: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "tidelog.cli.main", name, *args]
        words += ["--bootstrap-server", f"127.0.0.1:1,{apache.addresses[protocol]}", "--command-config", str(config)]
        return subprocess.run(words, input=typed, capture_output=True, text=True, timeout=60, check=False, env=environment())

    return run


def settings(protocol: str, *lines: str) -> str:
    return "\n".join((f"security.protocol={protocol}", *lines, ""))


@pytest.mark.parametrize(
    ("protocol", "sasl"),
    [
        ("SSL", ()),
        ("SASL_SSL", ("sasl.mechanism=SCRAM-SHA-512", SCRAM)),
        ("SASL_SSL", ("sasl.mechanism=PLAIN", PLAIN)),
        ("SASL_PLAINTEXT", ("sasl.mechanism=SCRAM-SHA-256", SCRAM)),
    ],
    ids=["ssl", "sasl-ssl-scram", "sasl-ssl-plain", "sasl-plaintext-scram"],
)
def test_topics_configs_groups_and_records(
    apache: Brokers, protocol: str, sasl: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    config = tmp_path / "client.properties"
    trust = (f"ssl.truststore.location={apache.pem}",) if protocol.endswith("SSL") else ()
    config.write_text(settings(protocol, *trust, *sasl))
    run = tool(apache, protocol, config)
    topic = request.node.callspec.id

    assert run("topics", "--create", "--topic", topic, "--partitions", "1").stdout == f"Created topic {topic}.\n"
    changed = run("configs", "--alter", "--topic", topic, "--add-config", "retention.ms=-1")
    assert changed.returncode == 0, changed.stderr
    assert "retention.ms=-1" in run("configs", "--describe", "--topic", topic).stdout
    sent = run("console-producer", "--topic", topic, typed="one\ntwo\n")
    assert sent.returncode == 0, sent.stderr
    read = run(
        "console-consumer", "--topic", topic, "--group", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", "30000"
    )
    assert read.stdout == "one\ntwo\n", read.stderr
    described = run("consumer-groups", "--describe", "--group", topic)
    assert described.returncode == 0, described.stderr
    assert topic in run("consumer-groups", "--list").stdout.split()


def test_a_certificate_by_its_text_and_one_that_is_not_trusted(apache: Brokers, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    run = tool(apache, "SSL", config)
    text = apache.pem.read_text()
    inline = text[text.index("-----BEGIN CERTIFICATE") :].replace("\n", "\\n")
    config.write_text(settings("SSL", "ssl.truststore.type=PEM", f"ssl.truststore.certificates={inline}"))
    assert run("topics", "--list").returncode == 0
    config.write_text(settings("SSL"))
    refused = run("topics", "--list")
    assert refused.returncode == 1
    assert "is not trusted" in refused.stderr


@pytest.mark.parametrize("name", ["topics", "console-consumer"])
def test_a_wrong_password_is_said_at_once(apache: Brokers, name: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(settings("SASL_PLAINTEXT", "sasl.mechanism=PLAIN", PLAIN.replace("secret", "guess")))
    run = tool(apache, "SASL_PLAINTEXT", config)
    refused = run(name, *(["--list"] if name == "topics" else ["--topic", "t"]))
    assert refused.returncode == 1
    assert "refuses user 'me' (PLAIN)" in refused.stderr


def test_tls_where_none_was_configured_is_named(apache: Brokers, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("")
    refused = tool(apache, "SSL", config)("topics", "--list")
    assert refused.returncode == 1
    assert "security.protocol" in refused.stderr
