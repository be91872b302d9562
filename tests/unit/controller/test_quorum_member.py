import random
from pathlib import Path

import pytest

from tests.unit.controller.conftest import CLUSTER, Rules
from tests.unit.server.controllers import setting
from tidelog.controller.quorum_member import MemberConfig, QuorumMember
from tidelog.controller.result import ControllerResult
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ControllerImage
from tidelog.metadata.image import Endpoint as Place
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.supported_features import supported_ranges
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.no_op_record import NoOpRecord
from tidelog.raft import quorum_state
from tidelog.raft.effects import AppendControl, Effect, HighWatermarkMoved, LeaderChanged, Persist
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.log_changes import append_control
from tidelog.raft.metadata_log import MetadataLogConfig
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint
from tidelog.server.disk import DiskFileSystem
from tidelog.storage.checkpoints import read_meta_properties

FS = DiskFileSystem()
NOW = 1_800_000_000_000
HERE = Endpoint("CONTROLLER", "h", 9093)


class Alone:
    """The only member of its quorum, with a runner that does everything at once."""

    def __init__(self, directory: Path, log: MetadataLogConfig | None = None) -> None:
        if not directory.exists():
            format_dirs(FS, FormatRequest([str(directory)], 1, CLUSTER, standalone=[HERE]), rng=random.Random(1), now_ms=NOW)
        meta = read_meta_properties(FS, str(directory))
        assert meta is not None and meta.directory_id is not None
        self.member = QuorumMember.open(
            FS,
            MemberConfig(
                RaftConfig(ReplicaKey(1, Uuid(meta.directory_id)), CLUSTER, (HERE,)),
                str(directory),
                ControllerImage(1, Uuid(b"c" * 16), {"CONTROLLER": Place("CONTROLLER", "h", 9093)}, supported_ranges()),
                VoterSet(()),
                log or MetadataLogConfig(),
            ),
            rng=random.Random(3),
            rules=Rules(),
            now_ms=NOW,
            steady_ms=0,
        )
        self.released: list[object] = []
        self.refused: list[object] = []
        self.do(self.member.machine.tick(0))

    def do(self, effects: list[Effect]) -> None:
        member = self.member
        for effect in effects:
            if isinstance(effect, Persist):
                quorum_state.store(FS, member.log.dir, effect.state)
            elif isinstance(effect, LeaderChanged):
                self.refused += member.leader_changed(effect)
            elif isinstance(effect, AppendControl):
                append_control(member.log, effect, NOW)
            elif isinstance(effect, HighWatermarkMoved):
                self.released += member.high_watermark_moved(effect.offset)

    def sync(self) -> None:
        member = self.member
        job = member.log.flush_job()
        job.run()
        end = member.log.flushed(job, NOW)
        self.do(member.machine.log_synced(end, member.machine.quorum.log.shape.generation, 0))
        if member.may_activate:
            self.do(member.activate(NOW, 0))
            self.sync()

    def submit(self, value: str) -> object:
        pending, effects = self.member.submit(setting(value), None, NOW, 0)
        self.do(effects)
        return pending


def test_it_is_active_once_its_epoch_has_committed_something(tmp_path: Path) -> None:
    alone = Alone(tmp_path / "d")
    assert alone.member.controller is None
    with pytest.raises(KafkaError) as refused:
        alone.submit("1")
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    alone.sync()
    assert alone.member.controller is not None
    assert 1 in alone.member.image.controllers and alone.member.image.metadata_version > 0


def test_an_answer_waits_for_the_commit_and_a_lost_leadership_refuses_it(tmp_path: Path) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    first = alone.submit("1")
    assert alone.released == []
    alone.sync()
    assert alone.released == [first] and alone.member.image.cluster_configs["num.partitions"] == "1"
    second = alone.submit("2")
    alone.do(alone.member.machine.shut_down(0, 100))
    assert alone.refused == [second] and alone.member.controller is None


def test_what_was_appended_is_there_after_a_restart_in_a_later_epoch(tmp_path: Path) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    alone.submit("4")
    alone.sync()
    epoch = alone.member.machine.epoch
    alone.member.log.close()
    again = Alone(tmp_path / "d")
    again.sync()
    assert again.member.machine.epoch == epoch + 1
    assert again.member.image.cluster_configs["num.partitions"] == "4"


def test_an_idle_leader_gives_a_sign_of_life(tmp_path: Path) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    before = alone.member.log.end_offset
    alone.do(alone.member.sign_of_life(NOW, 10, 500))
    assert alone.member.log.end_offset == before
    alone.do(alone.member.sign_of_life(NOW - 3_600_000, 500, 500))
    assert alone.member.log.end_offset == before + 1


def test_a_snapshot_of_the_committed_image_lets_old_log_go(tmp_path: Path) -> None:
    alone = Alone(tmp_path / "d", MetadataLogConfig(max_record_bytes_between_snapshots=1, retention_bytes=0))
    alone.sync()
    for value in ("1", "2"):
        alone.submit(value)
        alone.sync()
        assert alone.member.snapshot_due(NOW)
        job = alone.member.snapshot_job(NOW)
        job.run()
        alone.member.snapshot_finished(job, NOW)
    newest = alone.member.log.newest_snapshot
    assert newest is not None
    assert alone.member.machine.quorum.log.shape.newest_snapshot == newest
    assert alone.member.machine.quorum.log.shape.start_offset == alone.member.log.log.log_start_offset > 0
    assert not alone.member.snapshot_due(NOW)
    alone.member.log.close()
    assert Alone(tmp_path / "d").member.image.cluster_configs["num.partitions"] == "2"


def test_a_leader_that_resigns_with_an_append_decides_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    member = alone.member
    assert member.controller is not None
    appended = member.machine.appended

    def resign(next_offset: int, now_ms: int) -> list[Effect]:
        return [*appended(next_offset, now_ms), *member.machine.shut_down(now_ms, 100)]

    decisions = iter([ControllerResult(True, (NoOpRecord(),))] * 3)
    monkeypatch.setattr(member.controller, "tick", lambda now_ms, steady_ms: next(decisions))
    monkeypatch.setattr(member.machine, "appended", resign)
    before = member.log.end_offset
    alone.do(member.tick(NOW, 0))
    assert member.log.end_offset == before + 1
    assert len(list(decisions)) == 2


def test_each_tick_does_one_thing_and_says_whether_more_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    member = alone.member
    assert member.controller is not None
    decisions = iter([ControllerResult(True, (NoOpRecord(),)), ControllerResult(True), ControllerResult(False, (NoOpRecord(),))])
    monkeypatch.setattr(member.controller, "tick", lambda now_ms, steady_ms: next(decisions))
    before, seen = member.log.end_offset, []
    for _ in range(3):
        alone.do(member.tick(NOW, 0))
        seen.append((member.log.end_offset - before, member.more_due))
    assert seen == [(1, True), (1, True), (2, False)]


def test_what_the_controller_has_replayed_is_not_replayed_again_when_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    member = alone.member
    heard: list[tuple[object, object, object]] = []
    member.committed.listeners.append(lambda old, new, delta: heard.append((old, new, delta)))
    before = member.image
    replayed: list[MetadataRecord] = []
    replay = ClusterDelta.replay

    def counted(delta: ClusterDelta, record: MetadataRecord) -> None:
        replayed.append(record)
        replay(delta, record)

    monkeypatch.setattr(ClusterDelta, "replay", counted)
    alone.submit("4")
    alone.sync()
    assert len(replayed) == 1 and member.controller is not None
    ((old, new, delta),) = heard
    assert old is before and new is member.image is member.controller.image
    assert isinstance(delta, ClusterDelta) and delta.base is before
    assert member.image.cluster_configs["num.partitions"] == "4"
    assert not member.committed.advance(member.log, member.machine.high_watermark)


def test_a_snapshot_is_made_from_the_image_that_a_commit_left(tmp_path: Path) -> None:
    alone = Alone(tmp_path / "d")
    alone.sync()
    alone.submit("5")
    alone.sync()
    breaths: list[None] = []
    job = alone.member.snapshot_job(NOW)
    job.run(lambda: breaths.append(None))
    alone.member.snapshot_finished(job, NOW)
    assert job.id.offset == alone.member.machine.high_watermark and not breaths, "so few records need no rest"
