"""``Broker(tls=...)`` with librdkafka and aiokafka, and the certificates behind it."""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from confluent_kafka import KafkaError, Producer

from tests.unit.testing.test_access import QUIET, produced
from tidelog.client import AdminClient
from tidelog.config.key_store_formats import certificates_of
from tidelog.security.certificates import parse_certificate
from tidelog.testing import Broker, allow
from tidelog.testing.certificates import Certificates
from tidelog.testing.users import MECHANISMS


def report(settings: dict[str, str], *codes: int) -> bool:
    """Returns when librdkafka reports an error with one of these codes."""
    errors: list[KafkaError] = []
    producer = Producer(QUIET | settings | {"error_cb": errors.append})
    while not {each.code() for each in errors} & set(codes):
        producer.poll(0.1)
    return True


async def names(settings: dict[str, str]) -> set[str]:
    given = dict(settings)
    async with AdminClient(given.pop("bootstrap.servers"), given) as admin:
        return set(await admin.topics.names())


async def sent(settings: dict[str, Any], topic: str) -> int:
    async with aiokafka.AIOKafkaProducer(**settings) as producer:
        offset: int = (await producer.send_and_wait(topic, b"v")).offset
        return offset


@pytest.mark.parametrize("process", [False, True])
def test_clients_trust_the_brokers_authority_and_no_other(process: bool) -> None:
    with Broker(tls=True, process=process) as broker, Broker(tls=True) as other:
        assert produced(broker.access.client_settings()) is None
        assert asyncio.run(sent(broker.access.python_settings(), "orders")) == 1
        assert asyncio.run(names(broker.access.java_settings())) >= {"orders"}
        named = broker.access.client_settings() | {"bootstrap.servers": f"localhost:{broker.port}"}
        assert produced(named) is None, "the certificate has the machine's names, too"
        wrong = broker.access.client_settings() | {"ssl.ca.pem": other.access.ca_pem}
        assert report(wrong, KafkaError._SSL)
        by_file = broker.access.client_settings() | {"ssl.ca.location": broker.access.ca_file}
        del by_file["ssl.ca.pem"]
        assert produced(by_file) is None
        broker.restart()
        assert produced(broker.access.client_settings()) is None, "the authority is the same after a restart"


def test_users_log_in_inside_tls_by_each_mechanism() -> None:
    with Broker(tls=True, users={"alice": 's3"cr\\et'}, acls=[allow("alice", "all", topic="orders")]) as broker:
        for number, mechanism in enumerate(MECHANISMS):
            assert produced(broker.access.client_settings("alice", mechanism)) is None
            assert asyncio.run(sent(broker.access.python_settings("alice", mechanism), "orders")) == 2 * number + 1
            assert asyncio.run(names(broker.access.java_settings("alice", mechanism))) == {"orders"}
        assert broker.access.client_settings()["security.protocol"] == "SSL", "without a user it does not log in"


def test_with_mutual_tls_a_client_is_the_user_of_its_certificate() -> None:
    with Broker(tls="mutual", acls=[allow("CN=shop", "all", topic="orders")]) as broker:
        assert produced(broker.access.client_settings("shop")) is None
        assert asyncio.run(sent(broker.access.python_settings("shop"), "orders")) == 1
        assert asyncio.run(names(broker.access.java_settings("shop"))) == {"orders"}
        assert produced(broker.access.client_settings("audit")) == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert report(broker.access.client_settings(), KafkaError._SSL, KafkaError._TRANSPORT), "no certificate, no connection"


def test_mapping_rules_and_logins_choose_other_principals() -> None:
    rules = {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}
    with Broker(tls="mutual", acls=[allow("shop", "all", topic="orders")], config=rules) as broker:
        assert produced(broker.access.client_settings("shop")) is None
    with Broker(tls="mutual", users={"shop": "s3cret"}, acls=[allow("shop", "all", topic="orders")]) as broker:
        assert produced(broker.access.client_settings("shop")) is None
        assert produced(broker.access.client_settings("shop", certificate="another")) is None, "the login names the user"


def test_a_certificate_is_the_same_each_time_and_names_its_client() -> None:
    made = Certificates(mutual=True)
    assert made.client("shop") == made.client("shop")
    assert parse_certificate(certificates_of(made.client("shop").certificate)[0]).subject == "CN=shop"
    assert made.context(None).verify_mode is ssl.CERT_REQUIRED
    assert made.context(made.client("shop")).check_hostname


def test_the_authoritys_file_is_written_when_it_is_asked_for_and_gone_with_the_broker() -> None:
    made = Certificates(mutual=False)
    path = Path(made.authority_file)
    assert path.read_text() == made.authority
    path.unlink()
    assert Path(made.authority_file).read_text() == made.authority, "a test that deletes it gets it again"
    del made
    gc.collect()
    assert not path.parent.exists()


def test_what_was_not_asked_for_is_refused() -> None:
    with pytest.raises(ValueError, match="tls is 'yes'"):
        Broker(tls="yes")  # type: ignore[arg-type]
    plain = Broker().access
    for ask in (lambda: plain.ca_pem, lambda: plain.ca_file, lambda: plain.certificate("shop")):
        with pytest.raises(ValueError, match=r"Broker\(tls=True\)"):
            ask()
    with Broker() as broker, pytest.raises(ValueError, match=r"Broker\(tls=True\)"):
        broker.access.client_settings(certificate="shop")
    with Broker(tls=True) as broker, pytest.raises(ValueError, match="no users"):
        broker.access.client_settings("shop")


def test_a_broker_without_tls_does_not_load_it() -> None:
    code = (
        "import sys, tidelog.testing as t; b = t.Broker().start(); b.stop(); "
        "heavy = {'cryptography', 'tidelog.testing.certificates', 'tidelog.testing.users', 'tidelog.security.authority'}; "
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
