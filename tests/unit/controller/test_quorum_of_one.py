import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.controller.conftest import CLUSTER
from tests.unit.controller.sole_member import SoleMember
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError, decode_record, encode_record
from tidelog.metadata.supported_features import UnsupportedFeatureLevel, default_levels, supported_ranges
from tidelog.model.errors import KafkaError, StorageFailure
from tidelog.protocol.messages.begin_transaction_record import BeginTransactionRecord
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tidelog.raft import quorum_state
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.metadata_log import MetadataLogConfig
from tidelog.raft.snapshots import encode_snapshot
from tidelog.records import control
from tidelog.records.batch import iter_headers
from tidelog.server.disk import DiskFileSystem

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"
FS = DiskFileSystem()
NOW = 1_800_000_000_000
LEVELS = [*["FeatureLevelRecord"] * len(default_levels()), "ConfigRecord"]
"""With eligible leader replicas comes the min.insync.replicas that they go by, as Apache Kafka 4.3.1 writes it."""
BEGINNING = 4 + len(LEVELS)
"""Where the log of a new cluster ends: its leader, its levels in a transaction, its controller."""


def start(log_dir: Path, **more: Any) -> SoleMember:
    return SoleMember(FS, log_dir, now_ms=NOW, **more)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    format_dirs(FS, FormatRequest([str(tmp_path / "d")], 1, CLUSTER), rng=random.Random(1), now_ms=NOW)
    return tmp_path / "d"


def serve(node: SoleMember) -> int:
    """Registers and unfences broker 1, as its process would; its epoch."""
    features = [Feature(name=k, min_supported_version=a, max_supported_version=b) for k, (a, b) in supported_ranges().items()]
    request = BrokerRegistrationRequest(
        broker_id=1, cluster_id=CLUSTER, incarnation_id=bytes([node.epoch]) * 16, features=features, log_dirs=[b"d" * 16]
    )
    pending = node.submit(QuorumController.register_broker, request, NOW)
    node.flush_now(NOW)
    epoch = int(pending.response.broker_epoch)
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=node.image.offset)
    node.submit(QuorumController.broker_heartbeat, beat, NOW)
    node.flush_now(NOW)
    return epoch


def topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names])


def names(node: SoleMember) -> list[str]:
    return [
        record.NAME
        for header, records in node.log.batches_from(0)
        if not header.is_control
        for record in (decode_record(each.value) for each in records)
    ]


def test_a_new_cluster_begins_with_leader_bootstrap_and_controller(log_dir: Path) -> None:
    node = start(log_dir)
    assert (log_dir / "__cluster_metadata-0" / "quorum-state").read_bytes() == quorum_state.sealed(
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert [header.is_control for header, _ in node.log.batches_from(0)] == [True, False, False]
    assert names(node) == ["BeginTransactionRecord", *LEVELS, "EndTransactionRecord", "RegisterControllerRecord"]
    assert (node.image.offset, node.image.epoch, node.image.features) == (3 + len(LEVELS), 1, default_levels())
    assert node.high_watermark == BEGINNING
    assert not node.flush_needed


def test_every_start_is_an_epoch_of_its_own_on_the_same_cluster(log_dir: Path) -> None:
    for epoch in (1, 2, 3):
        node = start(log_dir)
        assert (node.epoch, node.image.epoch) == (epoch, epoch)
        serve(node)
        node.submit(QuorumController.create_topics, topics(f"t{epoch}"), NOW)
        node.close(NOW)
    node = start(log_dir)
    assert list(node.image.topics.by_name) == ["t1", "t2", "t3"]
    assert node.log.log.leader_epochs.latest == 4


def test_a_response_is_done_only_when_its_records_are_synced(log_dir: Path) -> None:
    node = start(log_dir)
    serve(node)
    first = node.submit(QuorumController.create_topics, topics("a"), NOW)
    job = node.flush_job()
    second = node.submit(QuorumController.create_topics, topics("b"), NOW)
    assert (first.done, second.done, list(node.image.topics.by_name)) == (False, False, [])
    assert list(node.controller.image.topics.by_name) == ["a", "b"]
    job.run()
    assert node.flushed(job, NOW) == [first]
    assert (first.done, second.done, list(node.image.topics.by_name)) == (True, False, ["a"])
    assert node.flush_needed
    assert node.flush_now(NOW) == [second]
    assert list(node.image.topics.by_name) == ["a", "b"]
    assert node.image is node.controller.image


def test_one_sync_commits_all_that_was_submitted_and_listeners_hear_of_it_once(log_dir: Path) -> None:
    node = start(log_dir)
    serve(node)
    heard: list[tuple[ClusterImage, ClusterImage, ClusterDelta]] = []
    node.add_listener(lambda old, new, delta: heard.append((old, new, delta)))
    before = node.image
    pending = [node.submit(QuorumController.create_topics, topics(name), NOW) for name in "abc"]
    assert node.flush_now(NOW) == pending
    ((old, new, delta),) = heard
    assert (old, new) == (before, node.image)
    assert [change.name for change in delta.topics.changed.values()] == ["a", "b", "c"]
    assert [each.token for each in pending] == sorted({each.token for each in pending})


def test_an_answer_without_records_waits_for_the_records_it_was_decided_on(log_dir: Path) -> None:
    node = start(log_dir)
    serve(node)
    again = node.submit(QuorumController.create_topics, topics("bad name"), NOW)
    assert again.done
    node.submit(QuorumController.create_topics, topics("a"), NOW)
    exists = node.submit(QuorumController.create_topics, topics("a"), NOW)
    assert exists.response.topics[0].error_code == 36
    assert not exists.done
    node.flush_now(NOW)
    assert exists.done


def test_a_request_that_fails_as_a_whole_raises_and_leaves_nothing(log_dir: Path) -> None:
    node = start(log_dir)
    end = node.log.end_offset
    with pytest.raises(KafkaError):
        node.submit(QuorumController.register_broker, BrokerRegistrationRequest(broker_id=1, cluster_id="other"), NOW)
    assert node.log.end_offset == end


def large(count: int) -> Callable[[QuorumController, Any, int], ControllerResult]:
    def handler(controller: QuorumController, request: Any, now_ms: int) -> ControllerResult:
        value = "v" * 30_000
        records = [ConfigRecord(resource_type=4, resource_name="1", name=f"n{n:03}", value=value) for n in range(count)]
        return ControllerResult.of("done", records)

    return handler


def test_a_group_too_large_for_a_batch_is_a_transaction_of_several(log_dir: Path) -> None:
    node = start(log_dir)
    pending = node.submit(large(600), None, NOW)
    assert node.flush_now(NOW) == [pending]
    sizes = [header.size for header, _ in node.log.batches_from(BEGINNING)]
    assert len(sizes) == 3
    assert max(sizes) <= 8 * 1024 * 1024
    assert names(node)[3 + len(LEVELS) :] == ["BeginTransactionRecord", *["ConfigRecord"] * 600, "EndTransactionRecord"]
    assert pending.offset == BEGINNING + 601
    expected = [f"n{n:03}" for n in range(600)]
    assert sorted(node.image.broker_configs(1)) == expected
    node.close(NOW)
    assert sorted(start(log_dir).image.broker_configs(1)) == expected


def test_a_transaction_left_open_is_aborted_and_never_seen(log_dir: Path) -> None:
    node = start(log_dir)
    open_group = [BeginTransactionRecord(name="x"), TopicRecord(name="half", topic_id=b"h" * 16)]
    node.log.append_values([encode_record(record, 30) for record in open_group], 1, NOW)
    node.log.log.flush()
    node.log.close()
    node = start(log_dir)
    assert "half" not in node.image.topics.by_name
    assert names(node)[-2:] == ["AbortTransactionRecord", "RegisterControllerRecord"]
    node.close(NOW)
    assert "half" not in start(log_dir).image.topics.by_name


def test_a_snapshot_is_due_by_size_or_time_and_the_next_start_uses_it(log_dir: Path) -> None:
    limits = MetadataLogConfig(max_record_bytes_between_snapshots=1000, max_snapshot_interval_ms=60_000)
    node = start(log_dir, log=limits)
    assert not node.snapshot_due(NOW)
    assert node.snapshot_due(NOW + 60_000)
    serve(node)
    node.submit(QuorumController.create_topics, topics(*(f"t{n}" for n in range(10))), NOW)
    node.flush_now(NOW)
    assert node.snapshot_due(NOW)
    job = node.snapshot_job(NOW)
    assert not node.snapshot_due(NOW + 60_000)
    late = node.submit(QuorumController.create_topics, topics("late"), NOW)
    job.run()
    assert node.snapshot_finished(job, NOW) == []
    node.flush_now(NOW)
    assert late.done
    assert node.log.newest_snapshot == job.id
    node.close(NOW)
    again = start(log_dir, log=limits)
    assert len(again.image.topics.by_name) == 11
    assert {**again.image.topics.by_name} == {**node.image.topics.by_name}
    assert again.image.next_producer_id == -1


def test_a_failed_sync_ends_the_node_and_is_never_taken_for_success(log_dir: Path) -> None:
    node = start(log_dir)
    serve(node)
    pending = node.submit(QuorumController.create_topics, topics("a"), NOW)
    job = node.flush_job()
    job.error = OSError(5, "Input/output error")
    with pytest.raises(StorageFailure):
        node.flushed(job, NOW)
    assert not pending.done
    assert "a" not in node.image.topics.by_name
    with pytest.raises(StorageFailure):
        node.submit(QuorumController.create_topics, topics("b"), NOW)
    assert not node.flush_needed


def test_a_dynamic_quorum_of_one_brings_its_voters_into_the_log_once(tmp_path: Path) -> None:
    here = [control.Endpoint("CONTROLLER", "h", 9093)]
    format_dirs(FS, FormatRequest([str(tmp_path)], 1, CLUSTER, standalone=here), rng=random.Random(1), now_ms=NOW)
    counts = []
    for port in (9093, 9093, 9094):
        node = start(tmp_path, port=port)
        batches = [records for header, records in node.log.batches_from(0) if header.is_control]
        counts.append(len(batches[-1]))
        assert node.member.machine.kraft_version == 1
        node.close(NOW)
    assert counts == [3, 1, 3]
    state = (tmp_path / "__cluster_metadata-0" / "quorum-state").read_bytes()
    kafkas = b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    assert state == quorum_state.sealed(kafkas)


def test_a_directory_that_kafka_wrote_is_led_on(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "standalone", tmp_path / "d")
    node = start(tmp_path / "d")
    image = node.image
    assert {topic.name: len(topic.partitions) for topic in image.topics.by_id.values()} == {"alpha": 3, "beta": 5}
    assert image.topic_configs("alpha") == {"retention.ms": "3600000", "cleanup.policy": "compact,delete"}
    assert image.topic_configs("beta") == {"segment.bytes": "2000000"}
    assert image.broker_configs(1) == {"log.cleaner.threads": "2"}
    assert (image.next_producer_id, image.features) == (1000, {"metadata.version": 30})
    assert (node.epoch, node.member.machine.kraft_version) == (2, 1)
    assert {partition.leader for topic in image.topics.by_id.values() for partition in topic.partitions} == {-1}
    serve(node)
    assert {p.leader for topic in node.image.topics.by_id.values() for p in topic.partitions if 1 in p.isr} == {-1}, "other disk"


def test_a_directory_finalized_above_what_we_serve_is_refused_and_left_alone(log_dir: Path) -> None:
    levels = [("metadata.version", 30), ("transaction.version", 3)]
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels]
    data = b"".join(encode_snapshot(records, metadata_version=30, epoch=0, now_ms=NOW, last_timestamp_ms=0))
    (log_dir / "bootstrap.checkpoint").write_bytes(data)
    with pytest.raises(UnsupportedFeatureLevel, match=r"transaction\.version is finalized at level 3.*supports levels 0 to 2"):
        start(log_dir)
    assert (log_dir / "__cluster_metadata-0" / "00000000000000000000.log").stat().st_size == 0


def test_a_crash_between_election_and_first_records_costs_nothing_but_an_epoch(log_dir: Path) -> None:
    node = start(log_dir)
    node.close(NOW)
    path = log_dir / "__cluster_metadata-0" / "00000000000000000000.log"
    first = next(iter(iter_headers(path.read_bytes())))
    path.write_bytes(path.read_bytes()[: first.size + 30])
    (path.parent / "tidelog-flushed").unlink()  # the crash came before what the log lacks was synced
    node = start(log_dir)
    assert (node.epoch, node.image.metadata_version) == (2, 30)
    assert names(node)[:2] == ["BeginTransactionRecord", "FeatureLevelRecord"]


def test_a_record_of_newer_software_stops_the_start_with_its_offset(log_dir: Path) -> None:
    node = start(log_dir)
    node.log.append_values([b"\x01\x63\x00\x00"], 1, NOW)
    node.log.log.flush()
    node.log.close()
    with pytest.raises(MetadataLogError, match=f"offset {BEGINNING}: metadata record type 99"):
        start(log_dir)


def test_the_voters_of_the_configuration_go_into_the_log_with_kraft_version_1_and_stay(log_dir: Path) -> None:
    node = start(log_dir)
    serve(node)
    assert node.member.machine.kraft_version == 0
    keys = [
        FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1),
        FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2),
    ]
    asked = node.submit(QuorumController.update_features, UpdateFeaturesRequest(feature_updates=keys), NOW)
    assert not asked.done
    assert node.flush_now(NOW) == [asked]
    assert (asked.response.error_code, node.image.features["transaction.version"]) == (0, 1)
    written = [header.is_control for header, _ in node.log.batches_from(BEGINNING)]
    assert written[-2:] == [False, True]
    node.close(NOW)
    again = start(log_dir)
    machine = again.member.machine
    assert machine.kraft_version == 1
    assert [each.endpoints[0].name for each in machine.voters.voters] == ["CONTROLLER"]
    assert machine.voters.keys == (machine.quorum.me,)
    job = again.snapshot_job(NOW)
    job.run()
    again.snapshot_finished(job, NOW)
    assert start(log_dir).member.machine.kraft_version == 1
