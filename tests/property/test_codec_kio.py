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


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.name)
def test_kio_reads_our_bytes_and_writes_the_same(message: Message) -> None:
    for version in range(message.versions[0], message.versions[1] + 1):
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


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.name)
def test_kio_knows_no_version_that_we_do_not(message: Message) -> None:
    versions = f"kio.schema.{message.module}.v"
    for version in (message.versions[0] - 1, message.versions[1] + 1):
        with pytest.raises(ImportError):
            importlib.import_module(f"{versions}{version}.{message.kind}")
