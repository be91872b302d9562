import random
from pathlib import Path

import pytest

from tidelog.model.errors import ConfigError
from tidelog.model.ids import uuid_from_text
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.raft.format import FormatRequest, FormatResult, feature_levels, format_dirs
from tidelog.raft.snapshots import read_snapshot
from tidelog.records.batch import BatchHeader, iter_headers
from tidelog.records.control import Endpoint
from tidelog.server.disk import DiskFileSystem
from tidelog.storage.checkpoints import read_meta_properties

FS = DiskFileSystem()
CLUSTER = "5L6g3nShT-eMCtK--X86sw"
GOLDEN = Path(__file__).parents[2] / "golden" / "metadata" / "standalone"


def format_at(*dirs: Path, **more: object) -> FormatResult:
    request = FormatRequest(log_dirs=[str(each) for each in dirs], **{"node_id": 1, "cluster_id": CLUSTER, **more})  # type: ignore[arg-type]
    return format_dirs(FS, request, rng=random.Random(7), now_ms=1000)


def without_times(data: bytes, header: BatchHeader) -> bytes:
    """A batch's bytes but for its checksum and its two timestamps."""
    batch = data[header.position : header.end_position]
    return batch[:17] + batch[21:27] + batch[43:]


def test_every_dir_gets_whose_it_is_and_what_the_cluster_begins_with(tmp_path: Path) -> None:
    result = format_at(tmp_path / "a", tmp_path / "b")
    ids = set()
    for name in ("a", "b"):
        meta = read_meta_properties(FS, str(tmp_path / name))
        assert meta is not None
        assert (meta.cluster_id, meta.node_id) == (CLUSTER, 1)
        assert meta.directory_id == result.directories[str(tmp_path / name)]
        ids.add(meta.directory_id)
        snapshot = read_snapshot(FS, str(tmp_path / name / "bootstrap.checkpoint"))
        assert [(r.name, r.feature_level) for r in snapshot.records if isinstance(r, FeatureLevelRecord)] == [
            ("metadata.version", 30),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("share.version", 1),
            ("streams.version", 1),
            ("transaction.version", 2),
        ]
        assert not (tmp_path / name / "__cluster_metadata-0").exists()
    assert len(ids) == 2
    assert result.formatted == (str(tmp_path / "a"), str(tmp_path / "b"))


def test_the_same_levels_give_the_bootstrap_checkpoint_that_kafka_writes_but_for_its_times(tmp_path: Path) -> None:
    format_at(tmp_path / "a", levels={"metadata.version": 30})
    ours = (tmp_path / "a" / "bootstrap.checkpoint").read_bytes()
    theirs = (GOLDEN / "bootstrap.checkpoint").read_bytes()
    assert [without_times(ours, header) for header in iter_headers(ours)] == [
        without_times(theirs, header) for header in iter_headers(theirs)
    ]


def test_standalone_makes_the_node_the_only_voter_in_its_metadata_dir(tmp_path: Path) -> None:
    endpoints = [Endpoint("CONTROLLER", "127.0.0.1", 9093)]
    result = format_at(tmp_path / "a", tmp_path / "b", standalone=endpoints, metadata_log_dir=str(tmp_path / "b"))
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()
    checkpoint = tmp_path / "b" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    snapshot = read_snapshot(FS, str(checkpoint))
    assert snapshot.kraft_version == 1
    assert snapshot.voters is not None
    voter = snapshot.voters.voters[0]
    assert (voter.voter_id, voter.directory_id, voter.endpoints) == (1, result.directories[str(tmp_path / "b")], tuple(endpoints))
    assert checkpoint.stat().st_size == 241
    assert checkpoint.stat().st_mode & 0o777 == 0o400


def test_a_cluster_id_is_made_up_when_none_is_given_and_kept_by_dirs_added_later(tmp_path: Path) -> None:
    first = format_at(tmp_path / "a", cluster_id="")
    assert len(uuid_from_text(first.cluster_id)) == 16
    second = format_at(tmp_path / "a", tmp_path / "b", cluster_id="", ignore_formatted=True)
    assert second.cluster_id == first.cluster_id
    assert second.formatted == (str(tmp_path / "b"),)
    assert second.directories[str(tmp_path / "a")] == first.directories[str(tmp_path / "a")]


def test_a_formatted_dir_is_refused_unless_it_may_be_ignored_and_never_touched(tmp_path: Path) -> None:
    format_at(tmp_path / "a")
    before = (tmp_path / "a" / "meta.properties").read_bytes()
    with pytest.raises(ConfigError, match=r"already formatted.*--ignore-formatted"):
        format_at(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    with pytest.raises(ConfigError, match=r"belongs to cluster 5L6g3nShT.* say AAAAAAAAAAAAAAAAAAAAAA"):
        format_at(tmp_path / "a", cluster_id="AAAAAAAAAAAAAAAAAAAAAA", ignore_formatted=True)
    with pytest.raises(ConfigError, match=r"Invalid node\.id in: .*Expected 2, but read 1"):
        format_at(tmp_path / "a", node_id=2, ignore_formatted=True)
    assert (tmp_path / "a" / "meta.properties").read_bytes() == before


def test_a_format_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    endpoints = [Endpoint("CONTROLLER", "h", 1)]
    format_at(tmp_path / "a", standalone=endpoints)
    (tmp_path / "a" / "meta.properties").unlink()
    request = FormatRequest([str(tmp_path / "a")], 1, CLUSTER, standalone=endpoints)
    result = format_dirs(FS, request, rng=random.Random(8), now_ms=1000)
    snapshot = read_snapshot(FS, str(tmp_path / "a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"))
    assert snapshot.voters is not None
    assert snapshot.voters.voters[0].directory_id == result.directories[str(tmp_path / "a")]


def test_nothing_to_format_or_one_dir_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs is empty"):
        format_at()
    with pytest.raises(ConfigError, match="twice"):
        format_at(tmp_path, tmp_path)


def test_levels_come_from_features_and_release() -> None:
    newest = {
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
    }
    assert feature_levels([]) == {"metadata.version": 30, **newest}
    older = {name: level for name, level in newest.items() if name not in ("share.version", "streams.version")}
    assert feature_levels([], "4.2-IV0") == {"metadata.version": 28, **older, "share.version": 1}
    assert feature_levels([], "4.1-IV0") == {"metadata.version": 26, **older}
    assert feature_levels([], "4.0-IV3") == {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    assert "eligible.leader.replicas.version" not in feature_levels(["eligible.leader.replicas.version=0"])
    assert feature_levels([], "3.9-IV0") == {"metadata.version": 21}
    assert feature_levels([], "4.0-IV0") == {"metadata.version": 22, "group.version": 1}
    assert feature_levels(["metadata.version=21", "kraft.version=1"]) == {"metadata.version": 21, "kraft.version": 1}


@pytest.mark.parametrize(
    ("features", "release", "says"),
    [
        (["foo.version=1"], None, "Unsupported feature: foo.version. Supported features are: eligible"),
        (["group.version=2"], None, "supports levels 0 to 1 of group.version"),
        (["group.version"], None, "name=level"),
        (["metadata.version=6"], None, "supports levels 7 to 31"),
        (["metadata.version=30"], "4.3-IV0", "not with both"),
        ([], "9.9", "Unknown metadata.version '9.9'"),
    ],
)
def test_levels_that_are_not_served_are_refused(features: list[str], release: str | None, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        feature_levels(features, release)
