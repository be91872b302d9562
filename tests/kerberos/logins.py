"""Java's clients, librdkafka, kafka-python, aiokafka and a client of a few bytes log in to a tidelog node with tickets of a real
KDC (``make kerberos``). ``own_clients`` has the sixth kind, tidelog's own.

Not collected by ``make test``: it needs Debian's krb5-kdc, krb5-admin-server, krb5-user, libkrb5-dev, libsasl2-modules-gssapi-mit
and kcat, and ``pip install gssapi``. confluent-kafka's wheels have no GSSAPI; kcat is librdkafka with it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import time
from typing import Any

import aiokafka
import gssapi
import kafka
import pytest

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.kerberos.kdc import REALM
from tests.kerberos.realm import REAUTH_MS, Realm

LIMIT_S = 30
RECORDS = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]


def python_settings(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
    }


def kcat(realm: Realm, bootstrap: str, user: str, *args: str, text: str = "") -> subprocess.CompletedProcess[str]:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": f"{user}@{REALM}",
        "sasl.kerberos.keytab": str(realm.keytabs[user]),
    }
    flags = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    return subprocess.run(
        ["kcat", "-b", bootstrap, *flags, *args], input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def test_javas_clients_log_in(realm: Realm, java: JavaSide) -> None:
    realm.node.create("java", 1)
    answer = java.ask("produce", bootstrap=realm.long, topic="java", config=realm.jaas("ann"), records=RECORDS)
    assert answer["offsets"] == [0]


def test_librdkafka_logs_in(realm: Realm) -> None:
    realm.node.create("rdkafka", 1)
    realm.become("ann")
    done = kcat(realm, realm.long, "ann", "-P", "-t", "rdkafka", text="v\n")
    assert done.returncode == 0, done.stderr
    read = kcat(realm, realm.long, "ann", "-C", "-t", "rdkafka", "-e", "-o", "beginning")
    assert read.stdout == "v\n", read.stderr


def test_kafka_python_logs_in(realm: Realm) -> None:
    realm.node.create("kafka-python", 1)
    realm.become("ann")
    producer = kafka.KafkaProducer(**python_settings(realm.long))
    assert producer.send("kafka-python", b"v").get(LIMIT_S).offset == 0
    producer.close()


def test_aiokafka_logs_in(realm: Realm) -> None:
    realm.node.create("aiokafka", 1)
    realm.become("ann")

    async def main() -> int:
        async with aiokafka.AIOKafkaProducer(**python_settings(realm.long)) as producer:
            return int((await producer.send_and_wait("aiokafka", b"v")).offset)

    assert asyncio.run(asyncio.wait_for(main(), LIMIT_S)) == 0


def test_acls_decide_by_the_user_of_the_ticket(realm: Realm, java: JavaSide) -> None:
    realm.node.create("closed", 1)
    with pytest.raises(JavaFailed, match="TopicAuthorizationException"):
        java.ask("produce", bootstrap=realm.long, topic="closed", config=realm.jaas("bob"), records=RECORDS)


def test_a_principal_without_a_user_name_is_an_authentication_error(realm: Realm, java: JavaSide) -> None:
    with pytest.raises(JavaFailed, match=r"SaslAuthenticationException.*no user name on this node"):
        java.ask("produce", bootstrap=realm.long, topic="never", config=realm.jaas("eve"), records=RECORDS)
    realm.become("eve")
    refused = kcat(realm, realm.long, "eve", "-L", "-m", "5")
    assert refused.returncode == 1
    assert "no user name on this node" in refused.stderr
    assert f"makes 'eve@{REALM}' of a principal" in realm.node.log_file.read_text()


def test_java_authenticates_again_under_load_without_an_error(realm: Realm, java: JavaSide) -> None:
    """Over three lives of a session: nothing is refused or sent over a new connection because of it."""
    realm.node.create("again", 1)
    end = time.monotonic() + 3.5 * REAUTH_MS / 1000
    count = 0
    while time.monotonic() < end:
        answer = java.ask("produce", bootstrap=realm.short, topic="again", config=realm.jaas("ann"), records=RECORDS)
        assert answer["offsets"] == [count]
        count += 1
    assert count > 3
    assert "did not authenticate again" not in realm.node.log_file.read_text()


class Raw:
    """A client of a few bytes, whose context is the test's."""

    def __init__(self, realm: Realm, version: int) -> None:
        self.version = version
        self.socket = socket.create_connection(("127.0.0.1", realm.port), LIMIT_S)
        answer = self._ask(17, version, struct.pack(">h", 6) + b"GSSAPI")
        assert struct.unpack_from(">h", answer) == (0,), answer

    def context(self, **settings: Any) -> gssapi.SecurityContext:
        name = gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)
        return gssapi.SecurityContext(name=name.canonicalize(gssapi.MechType.kerberos), usage="initiate", **settings)

    def _frame(self, body: bytes) -> bytes:
        self.socket.sendall(struct.pack(">i", len(body)) + body)
        return self._read()

    def _read(self) -> bytes:
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
            part = self.socket.recv(65536)
            if not part:
                raise EOFError
            data += part
        return data[4:]

    def _ask(self, key: int, version: int, body: bytes) -> bytes:
        return self._frame(struct.pack(">hhih", key, version, 7, -1) + body)[4:]

    def token(self, token: bytes) -> tuple[int, bytes, int]:
        """(error code, token, lifetime in ms) of the answer."""
        if self.version == 0:
            return 0, self._frame(token), 0
        answer = self._ask(36, 1, struct.pack(">i", len(token)) + token)
        code, length = struct.unpack_from(">hh", answer)
        at = 4 + max(0, length)
        (size,) = struct.unpack_from(">i", answer, at)
        return code, answer[at + 4 : at + 4 + size], struct.unpack_from(">q", answer, at + 4 + size)[0]

    def last(self, token: bytes) -> None:
        """A token without header that has no answer."""
        self.socket.sendall(struct.pack(">i", len(token)) + token)

    def served(self) -> bool:
        """Whether the node answers ApiVersions."""
        return self._ask(18, 0, b"")[:2] == b"\0\0"


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("proof", [True, False])
def test_both_forms_of_the_handshake_with_and_without_a_proof_of_the_server(realm: Realm, version: int, proof: bool) -> None:
    realm.become("ann")
    raw = Raw(realm, version)
    flag = gssapi.RequirementFlag.mutual_authentication if proof else gssapi.RequirementFlag.integrity
    context = raw.context(flags=[flag])
    _, answer, _ = raw.token(context.step(None))
    if proof:
        assert not context.step(answer)
        _, answer, _ = raw.token(b"")
    assert context.complete
    assert context.unwrap(answer).message == b"\x01\0\0\0"
    choice = context.wrap(b"\x01\0\0\0root", False).message
    if version:
        code, answer, lifetime_ms = raw.token(choice)
        assert (code, answer) == (0, b"")
        assert 3_000_000 < lifetime_ms < 3_700_000
    else:
        raw.last(choice)
    assert raw.served()


def test_a_session_ends_with_its_ticket(realm: Realm) -> None:
    realm.become("brief")
    raw = Raw(realm, 1)
    context = raw.context(flags=[gssapi.RequirementFlag.integrity])
    _, answer, _ = raw.token(context.step(None))
    context.unwrap(answer)
    code, _, lifetime_ms = raw.token(context.wrap(b"\x01\0\0\0", False).message)
    assert code == 0
    assert 0 < lifetime_ms <= 15_000
    assert raw.served()
    time.sleep(lifetime_ms / 1000 + 0.1)
    with pytest.raises((EOFError, ConnectionResetError)):
        raw.served()
    assert "the session is over" in realm.node.log_file.read_text()


def test_what_is_no_ticket_for_this_node_is_refused_and_a_ticket_counts_once(realm: Realm) -> None:
    realm.become("ann")
    raw = Raw(realm, 1)
    ticket = raw.context(flags=[gssapi.RequirementFlag.integrity]).step(None)
    assert raw.token(ticket)[0] == 0
    spnego = gssapi.OID.from_int_seq("1.3.6.1.5.5.2")
    negotiated = raw.context(mech=spnego).step(None)
    time.sleep(1)  # The log has the first failures of each second.
    for token in (ticket, bytes(70_000), ticket[:-3], b"", b"nonsense", negotiated):
        assert Raw(realm, 1).token(token)[0] == 58
    log = realm.node.log_file.read_text()
    assert "GSSAPI: Request is a replay" in log
    assert "a token of 70000 bytes" in log


def test_a_new_key_counts_without_a_restart(realm: Realm) -> None:
    keytab = realm.kdc.home / "kafka_localhost.keytab"
    realm.kdc.extract("kafka/localhost", keytab)
    realm.become("ann")
    producer = kafka.KafkaProducer(**python_settings(realm.long))
    assert producer.send("kafka-python", b"v").get(LIMIT_S).offset >= 0
    producer.close()
