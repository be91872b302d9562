"""Every RPC at every version against kio, an independent implementation: our bytes are its bytes, in both directions."""

from __future__ import annotations

import importlib
import io
import os
import random

import pytest
from kio.serial import entity_reader, entity_writer

from tests.unit.protocol.random_messages import Maker, all_messages, class_of
from tidelog.protocol.schema import Message

ROUNDS = 200 if os.environ.get("TIDELOG_LONG") else 6
# What kio has: all RPCs and their headers. Records of Kafka's own logs are held against recorded bytes in tests/golden.
MESSAGES = [m for m in all_messages() if m.kind in ("request", "response", "header")]
NEW_IN_4_4 = {
    "api_versions": 5,
    "txn_offset_commit": 6,
    "delete_groups": 3,
    "streams_group_heartbeat": 1,
    "streams_group_describe": 1,
    "streams_group_topology_description_update": 0,
    "unregister_controller": 0,
}
"""The versions that Kafka 4.4 added; kio has those of 4.3. tests/interop/test_kafka_44.py has Kafka's own clients for these."""


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.name)
def test_kio_reads_our_bytes_and_writes_the_same(message: Message) -> None:
    for version in range(message.versions[0], min(message.versions[1] + 1, NEW_IN_4_4.get(message.module, 99))):
        module = importlib.import_module(f"kio.schema.{message.module}.v{version}.{message.kind}")
        kio_class = getattr(module, message.name)
        read, write = entity_reader(kio_class), entity_writer(kio_class)
        for seed in range(ROUNDS):
            rng = random.Random(f"{message.name} {version} {seed}")
            ours = Maker(message, version, rng, tame=True).make()
            data = ours.encode(version)
            theirs, size = read(data, 0)
            assert size == len(data)
            written = io.BytesIO()
            write(written, theirs)
            assert written.getvalue() == data
            assert class_of(message).decode(written.getvalue(), version) == ours


@pytest.mark.parametrize(("module", "version"), NEW_IN_4_4.items())
def test_kio_does_not_have_the_versions_of_kafka_4_4_yet(module: str, version: int) -> None:
    with pytest.raises(ImportError):
        importlib.import_module(f"kio.schema.{module}.v{version}.request")


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.name)
def test_kio_knows_no_version_that_we_do_not(message: Message) -> None:
    versions = f"kio.schema.{message.module}.v"
    for version in (message.versions[0] - 1, message.versions[1] + 1):
        with pytest.raises(ImportError):
            importlib.import_module(f"{versions}{version}.{message.kind}")
