"""A node and tools whose passwords are in a file, a folder and the environment: logins work, and no answer or log shows them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.node.console_tools import run
from tests.node.test_local_cluster import free_port

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = f"""\
config.providers=file,dir,env
config.providers.file.class={PACKAGE}.FileConfigProvider
config.providers.dir.class={PACKAGE}.DirectoryConfigProvider
config.providers.env.class={PACKAGE}.EnvVarConfigProvider
"""
ADMIN, ANN, THREADS = "canary-of-admin", "canary-of-ann", "1717"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_secrets_from_providers_open_the_node_and_are_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    private(tmp_path / "passwords.properties", f"admin={ADMIN}\n")
    (tmp_path / "folder").mkdir()
    private(tmp_path / "folder" / "ann", ANN)
    server = private(
        tmp_path / "server.properties",
        PROVIDERS
        + f"""\
node.id=1
listeners=LOCKED://127.0.0.1:{port}
listener.security.protocol.map=LOCKED:SASL_PLAINTEXT
inter.broker.listener.name=LOCKED
listener.name.locked.sasl.enabled.mechanisms=PLAIN
listener.name.locked.plain.sasl.jaas.config={PLAIN} required user_admin="${{file:{tmp_path}/passwords.properties:admin}}" \\
  user_ann="${{dir:{tmp_path}/folder:ann}}";
num.io.threads=${{env:THREADS}}
log.dirs={tmp_path}/data
tidelog.http.listener=
tidelog.log.level=debug
""",
    )
    client = tmp_path / "client.properties"
    client.write_text(
        PROVIDERS
        + f"""\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={PLAIN} required username="admin" password="${{env:ADMIN}}";
"""
    )
    monkeypatch.setenv("THREADS", THREADS)
    monkeypatch.setenv("ADMIN", ADMIN)
    log = tmp_path / "log"
    with log.open("wb") as errors:
        node = subprocess.Popen(
            [sys.executable, "-m", "tidelog.cli.main", "start", str(server)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert node.stdout is not None
        assert "tidelog is ready" in node.stdout.readline(), log.read_text()
        connection = ("--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(client))
        done = run("topics", *connection, "--create", "--topic", "orders")
        assert done.stdout == b"Created topic orders.\n", done.stderr
        ann = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": ANN}
        told: list[object] = []
        producer = Producer({**ann, "bootstrap.servers": f"127.0.0.1:{port}"})
        producer.produce("orders", b"v", on_delivery=lambda error, message: told.append(error))
        assert producer.flush(30) == 0
        assert told == [None]
        change = ("--alter", "--entity-type", "brokers", "--entity-name", "1")
        refused = run("configs", *connection, *change, "--add-config", "num.io.threads=${env:ADMIN}")
        assert refused.returncode == 1
        assert b"${env:ADMIN}" in refused.stderr, "a reference that comes over the wire stays a text"
        shown = run("configs", *connection, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
        assert b"num.io.threads=null sensitive=true" in shown.stdout, shown.stdout + shown.stderr
        assert b"config.providers=file,dir,env sensitive=false" in shown.stdout
    finally:
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0, log.read_text()
    everything = log.read_bytes() + b"".join(each.stdout + each.stderr for each in (done, refused, shown))
    for secret in (ADMIN, ANN, THREADS):
        assert secret.encode() not in everything
    assert b"every user of this machine can read it" not in everything


def test_a_node_does_not_start_without_a_value_and_names_files_that_every_user_can_read(tmp_path: Path) -> None:
    passwords = private(tmp_path / "passwords.properties", f"admin={ADMIN}\n")
    server = private(
        tmp_path / "server.properties",
        PROVIDERS + f"num.partitions=${{file:{passwords}:partitions}}\nlisteners=PLAINTEXT://127.0.0.1:0\n",
    )
    words = [sys.executable, "-m", "tidelog.cli.main", "start", str(server), "--data", str(tmp_path / "data")]
    words += ["-o", "tidelog.http.listener="]

    def said() -> str:
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ)).stderr

    where = f"${{file:{passwords}:partitions}}"
    assert said() == f"tidelog: num.partitions: {where} cannot be resolved: {passwords} has no key partitions.\n"
    passwords.write_text(f"partitions={ADMIN}\n")
    assert said() == "tidelog: num.partitions is '[hidden]', but must be a whole number of 32 bits.\n"
    assert not (tmp_path / "data").exists()
    passwords.write_text("partitions=2\n")
    passwords.chmod(0o644)
    node = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert node.stdout is not None
        assert "tidelog is ready" in node.stdout.readline()
    finally:
        node.send_signal(signal.SIGTERM)
        _, errors = node.communicate(timeout=60)
    assert f"chmod o-r {passwords}" in errors
