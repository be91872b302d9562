"""Partitions, long polls and fetch sessions as transcripts: commands, ``----``, what came of them.

Run with ``REWRITE_SCENARIOS=1`` to write what comes of them now; then read the diff. The words:

``topic t min.insync.replicas=2 replicas=1,2 isr=1 flush.messages=1`` makes a topic of one partition, led by broker 1.
``isr t 1,2`` / ``leader t 2`` / ``delete t`` / ``delete-records t 3`` / ``flush`` / ``advance 100`` change the world.
``produce p acks=-1 t=2`` appends a batch of two records to t; p names the request in later lines.
``fetch f session=0/0 wait=500 min=1 t@0 u@5 -v`` fetches t from offset 0 and u from 5, and forgets v.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.replication.world import DIRECTORY_IDS, Pending, World, batch, topic_id
from tidelog.broker.apis.records.fetch import fetch
from tidelog.broker.apis.records.produce import produce
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol.fastpath import FetchView, ProduceView
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.protocol.messages.produce import ProduceResponse
from tidelog.storage.log_config import LogConfig

HERE = Path(__file__).parent
LAG_MAX_MS = 30_000
LINE = "----"
FRAME_BEGINS = 9


class Transcript:
    """Runs commands; requests that wait are looked at again after each."""

    def __init__(self) -> None:
        self.world = World()
        self.said: list[str] = []
        self.waiting: dict[str, tuple[Pending, Callable[[str, Any], None]]] = {}
        self.sessions: dict[int, str] = {}

    def run(self, command: str) -> list[str]:
        word, *rest = command.split()
        getattr(self, "do_" + word.replace("-", "_"))(*rest)
        self._look()
        said, self.said = self.said, []
        return said or ["ok"]

    def _look(self) -> None:
        for name, (pending, tell) in list(self.waiting.items()):
            while not pending.done and (pending.blocking is not None or (pending.parked is not None and pending.parked.done)):
                pending.go_on()
            if pending.done:
                del self.waiting[name]
                tell(name, pending.answer)

    def _begin(self, name: str, ctx: Any, answer: Any, tell: Callable[[str, Any], None]) -> None:
        if isinstance(answer, list):
            tell(name, answer)
            return
        self.waiting[name] = (Pending(ctx, answer), tell)
        self._look()
        if name in self.waiting:
            self.said.append(f"{name} waits")

    # the world

    def do_topic(self, name: str, *settings: str) -> None:
        given = dict(setting.split("=") for setting in settings)
        replicas = tuple(int(number) for number in given.get("replicas", "1").split(","))
        isr = tuple(int(number) for number in given.get("isr", given.get("replicas", "1")).split(","))
        config = LogConfig(
            min_insync_replicas=int(given.get("min.insync.replicas", "1")),
            flush_messages=int(given.get("flush.messages", 1 << 62)),
        )
        id = Uuid(given["id"].encode().ljust(16, b".")) if "id" in given else None
        image = PartitionImage(replicas, isr, 1, directories=tuple(DIRECTORY_IDS[0] for _ in replicas))
        self.world.create(name, image, config=config, id=id)

    def do_delete(self, name: str) -> None:
        self.world.delete(name)

    def do_isr(self, name: str, isr: str) -> None:
        partition = self.world.partition(name)
        members = tuple(int(number) for number in isr.split(","))
        image = PartitionImage(
            partition.replicas, members, partition.leader, partition.leader_epoch, partition.partition_epoch + 1
        )
        # Who left had lagged for long: it is not waited for as one that is about to join.
        partition.update_metadata(image, self.world.now_ms + 2 * LAG_MAX_MS)

    def do_leader(self, name: str, leader: str) -> None:
        partition = self.world.partition(name)
        image = PartitionImage(partition.replicas, partition.isr, int(leader), partition.leader_epoch + 1)
        partition.update_metadata(image)

    def do_delete_records(self, name: str, offset: str) -> None:
        error, low_watermark = self.world.partition(name).delete_records(int(offset))
        self.said.append(f"{error.name} low watermark {low_watermark}")

    def do_flush(self) -> None:
        self.said.append(f"{self.world.run_jobs()} flushes")

    def do_advance(self, ms: str) -> None:
        self.world.now_ms += int(ms)
        for pending, _ in list(self.waiting.values()):
            if pending.parked is not None and pending.parked.deadline_ms <= self.world.now_ms:
                pending.expire()

    # requests

    def do_produce(self, name: str, *words: str) -> None:
        request = ProduceView(None, 1, 1000, [])
        for word in words:
            key, _, value = word.partition("=")
            if key == "acks":
                request.acks = int(value)
            else:
                request.topics.append((None, topic_id(key), [(0, batch(*[b"v"] * int(value)))]))
        ctx = self.world.context(13)
        self._begin(name, ctx, produce(ctx, request), self._produced)

    def _produced(self, name: str, answer: Any) -> None:
        for topic in ProduceResponse.decode(bytes(answer[0][FRAME_BEGINS:]), 13).responses:
            (partition,) = topic.partition_responses
            outcome = f"offset {partition.base_offset}" if not partition.error_code else ErrorCode(partition.error_code).name
            self.said.append(f"{name} {self._topic(topic.topic_id)}: {outcome}")

    def do_fetch(self, name: str, *words: str) -> None:
        request = FetchView()
        request.session_epoch, request.max_wait_ms, request.min_bytes = -1, 500, 1
        for word in words:
            key, _, value = word.partition("=")
            if key == "session":
                session, _, epoch = value.partition("/")
                known = [number for number, letter in self.sessions.items() if letter == session]
                request.session_id, request.session_epoch = known[0] if known else int(session), int(epoch)
            elif key in ("wait", "min"):
                setattr(request, {"wait": "max_wait_ms", "min": "min_bytes"}[key], int(value))
            elif word.startswith("-"):
                request.forgotten.append((None, topic_id(word[1:]), [0]))
            else:
                topic, _, offset = word.partition("@")
                offset, _, epoch = offset.partition("/")
                request.topics.append((None, topic_id(topic), [(0, int(epoch or -1), int(offset), -1, -1, 1 << 20)]))
        ctx = self.world.context(18)
        self._begin(name, ctx, fetch(ctx, request), self._fetched)

    def _fetched(self, name: str, answer: Any) -> None:
        raw = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in answer)
        response = FetchResponse.decode(raw[FRAME_BEGINS:], 18)
        session = "none"
        if response.session_id:
            session = self.sessions.setdefault(response.session_id, "ABCDEFGH"[len(self.sessions)])
        self.said.append(f"{name} {ErrorCode(response.error_code).name} session {session}")
        for topic in response.responses:
            (partition,) = topic.partitions
            outcome = ErrorCode(partition.error_code).name
            if not partition.error_code:
                outcome = f"{len(partition.records or b'')} bytes, log {partition.log_start_offset} to {partition.high_watermark}"
            self.said.append(f"  {self._topic(topic.topic_id)}: {outcome}")

    def _topic(self, id: bytes) -> str:
        return id.rstrip(b".").decode()


def play(text: str) -> str:
    """The same transcript with what comes of its commands now."""
    transcript = Transcript()
    blocks: list[str] = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        commands = lines[: lines.index(LINE)] if LINE in lines else lines
        said = [line for command in commands if not command.startswith("#") for line in transcript.run(command)]
        blocks.append("\n".join([*commands, LINE, *said] if said else commands))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_the_transcript_comes_out_as_it_is_written(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get("REWRITE_SCENARIOS"):
        path.write_text(played, encoding="utf-8")
    assert played == written
