"""Formats log dirs, as ``kafka-storage format`` does.

Each dir gets ``bootstrap.checkpoint`` (the initial feature levels of a new cluster) and, last, ``meta.properties`` (the identity
of the dir): a dir that has it is formatted. With ``standalone`` the metadata dir also gets the 0-0 checkpoint, which makes this
node the only member of a dynamic quorum (KIP-853). With ``initial_voters`` that checkpoint names several voters, and this node's
directory gets the id given there. Without either, the voters are those in ``controller.quorum.voters``, or come with the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.supported_features import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    SCRAM_MV,
    default_levels,
    metadata_version_from_name,
)
from tidelog.model.errors import ConfigError
from tidelog.model.ids import METADATA_TOPIC, Uuid, random_uuid, uuid_from_text, uuid_to_text
from tidelog.model.ports import FileSystem, Rng
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.raft.snapshots import BOOTSTRAP_FILE, PART_SUFFIX, SnapshotId, encode_snapshot, write_snapshot
from tidelog.raft.voters import VoterSet, parse_quorum_voters
from tidelog.records.control import Endpoint, Voter
from tidelog.storage.checkpoints import META_PROPERTIES, MetaProperties, read_meta_properties, replace_file

METADATA_DIR = f"{METADATA_TOPIC}-0"


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """What to format. ``cluster_id`` empty: a random one, or that of the dirs already formatted.

    ``levels`` as ``feature_levels`` returns them. ``standalone``: this node's controller endpoints, for a dynamic quorum of one;
    None for a static quorum. ``ignore_formatted``: skip formatted dirs instead of refusing.
    """

    log_dirs: Sequence[str]
    node_id: int
    cluster_id: str = ""
    metadata_log_dir: str = ""
    levels: Mapping[str, int] = field(default_factory=default_levels)
    standalone: Sequence[Endpoint] | None = None
    initial_voters: VoterSet | None = None
    ignore_formatted: bool = False
    scram: Sequence[UserScramCredentialRecord] = ()
    """The first users of the cluster (``--add-scram``); the same for all controllers."""


class FormatResult(NamedTuple):
    """The cluster id, the id of each dir, and the dirs that were formatted now."""

    cluster_id: str
    directories: Mapping[str, Uuid]
    formatted: tuple[str, ...]


def feature_levels(features: Sequence[str], release_version: str | None = None) -> dict[str, int]:
    """The levels of ``--feature name=level`` (repeatable) and ``--release-version``, with our defaults for the rest.

    ConfigError for a feature or level that tidelog does not support. Level 0 is left out: it needs no record.
    """
    levels: dict[str, int] = {}
    if release_version is not None:
        try:
            levels[METADATA_VERSION] = metadata_version_from_name(release_version)
        except ValueError as error:
            raise ConfigError(str(error)) from error
    for setting in features:
        name, equals, level = setting.partition("=")
        name, level = name.strip(), level.strip()
        if not equals or not level.isdecimal():
            raise ConfigError(f"--feature {setting!r} must be written as name=level, such as group.version=0")
        feature = FEATURES.get(name)
        if feature is None:
            raise ConfigError(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(FEATURES))}")
        if name == METADATA_VERSION and release_version is not None:
            raise ConfigError("Give metadata.version either with --feature or with --release-version, not with both.")
        if not feature.min_level <= int(level) <= feature.max_level:
            raise ConfigError(
                f"--feature {setting}: tidelog supports levels {feature.min_level} to {feature.max_level} of {name}"
            )
        levels[name] = int(level)
    levels = default_levels(levels.get(METADATA_VERSION)) | levels
    return {name: level for name, level in levels.items() if level > 0}


def format_dirs(fs: FileSystem, request: FormatRequest, *, rng: Rng, now_ms: int) -> FormatResult:
    """Formats every dir that is not formatted yet. Blocks. OSError as the disk gives it.

    ConfigError when a dir is formatted already (unless ``ignore_formatted``), or belongs to another cluster or node.
    """
    if not request.log_dirs:
        raise ConfigError("No log directory to format: log.dirs is empty.")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise ConfigError(f"log.dirs names a directory twice: {', '.join(request.log_dirs)}")
    present = {log_dir: found for log_dir in request.log_dirs if (found := _formatted(fs, log_dir)) is not None}
    cluster_id = _cluster_id(request, present, rng)
    if present and not request.ignore_formatted:
        raise ConfigError(
            f"Log directory {next(iter(present))} is already formatted. --ignore-formatted keeps it and formats the rest."
        )
    directories: dict[str, Uuid] = {}
    formatted = []
    for log_dir in request.log_dirs:
        found = present.get(log_dir)
        if found is not None:
            if found.directory_id is not None:
                directories[log_dir] = Uuid(found.directory_id)
            continue
        directory_id = _given_id(request, log_dir) or random_uuid(rng)
        directories[log_dir] = directory_id
        _format_dir(fs, request, log_dir, MetaProperties(cluster_id, request.node_id, directory_id), now_ms)
        formatted.append(log_dir)
    return FormatResult(cluster_id, directories, tuple(formatted))


def parse_initial_controllers(text: str, listener: str) -> VoterSet:
    """``1@host:9093:directory-id,...``, the value of ``--initial-controllers``. ConfigError names what is wrong."""
    voters = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, _, directory = entry.rpartition(":")
        try:
            directory_id = uuid_from_text(directory)
            (parsed,) = parse_quorum_voters(address).voters
        except ValueError as error:
            raise ConfigError(
                f"--initial-controllers has {entry!r}; each voter is written as id@host:port:directory-id ({error})"
            ) from error
        endpoint = Endpoint(listener, parsed.endpoints[0].host, parsed.endpoints[0].port)
        voters.append(Voter(parsed.voter_id, directory_id, (endpoint,)))
    if len({voter.voter_id for voter in voters}) != len(voters) or not voters:
        raise ConfigError(f"--initial-controllers must name each voter once: {text!r}")
    return VoterSet.of(voters)


def _metadata_dir(request: FormatRequest) -> str:
    return request.metadata_log_dir or request.log_dirs[0]


def _given_id(request: FormatRequest, log_dir: str) -> Uuid | None:
    """The directory id that ``initial_voters`` gives this node's metadata dir."""
    if request.initial_voters is None or log_dir != _metadata_dir(request):
        return None
    mine = request.initial_voters.by_id(request.node_id)
    if mine is None:
        raise ConfigError(f"--initial-controllers does not name this node, {request.node_id}.")
    return Uuid(mine.directory_id)


def _formatted(fs: FileSystem, log_dir: str) -> MetaProperties | None:
    return read_meta_properties(fs, log_dir) if fs.exists(f"{log_dir}/{META_PROPERTIES}") else None


def _cluster_id(request: FormatRequest, present: Mapping[str, MetaProperties], rng: Rng) -> str:
    cluster_id = request.cluster_id
    for log_dir, found in present.items():
        if cluster_id and found.cluster_id != cluster_id:
            raise ConfigError(
                f"{log_dir}/{META_PROPERTIES} belongs to cluster {found.cluster_id}; the other directories, or --cluster-id, say "
                f"{cluster_id}"
            )
        if found.node_id != request.node_id:
            raise ConfigError(
                f"Invalid node.id in: {log_dir}/{META_PROPERTIES}. Expected {request.node_id}, but read {found.node_id}"
            )
        cluster_id = found.cluster_id
    return cluster_id or uuid_to_text(random_uuid(rng))


def _format_dir(fs: FileSystem, request: FormatRequest, log_dir: str, meta: MetaProperties, now_ms: int) -> None:
    fs.make_dirs(log_dir)
    replace_file(fs, f"{log_dir}/{BOOTSTRAP_FILE}", b"".join(_bootstrap(request.levels, request.scram, now_ms)))
    first = request.standalone is not None or request.initial_voters is not None
    if first and log_dir == _metadata_dir(request):
        assert meta.directory_id is not None
        directory = f"{log_dir}/{METADATA_DIR}"
        fs.make_dirs(directory)
        snapshot_id = SnapshotId(0, 0)
        for leftover in (snapshot_id.file_name, snapshot_id.file_name + PART_SUFFIX):
            # Left by an unfinished format: its directory id is used nowhere.
            if fs.exists(f"{directory}/{leftover}"):
                fs.remove(f"{directory}/{leftover}")
        voters = request.initial_voters
        if voters is None:
            voters = VoterSet.of([Voter(request.node_id, meta.directory_id, tuple(request.standalone or ()))])
        batches = encode_snapshot((), metadata_version=0, epoch=0, now_ms=now_ms, last_timestamp_ms=now_ms, voters=voters)
        write_snapshot(fs, directory, snapshot_id, batches)
        fs.sync_dir(log_dir)
    replace_file(fs, f"{log_dir}/{META_PROPERTIES}", meta.encode())


def _bootstrap(levels: Mapping[str, int], scram: Sequence[UserScramCredentialRecord], now_ms: int) -> list[bytearray]:
    """``metadata.version`` comes first: readers interpret the rest by it."""
    assert KRAFT_VERSION not in levels or levels[KRAFT_VERSION] <= 1
    ordered = [METADATA_VERSION, *sorted(name for name in levels if name not in (METADATA_VERSION, KRAFT_VERSION))]
    records: list[MetadataRecord] = [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in ordered]
    version = levels[METADATA_VERSION]
    if scram and version < SCRAM_MV:
        raise ConfigError("--add-scram needs metadata.version 3.5-IV2 or higher.")
    records += scram
    return list(encode_snapshot(records, metadata_version=version, epoch=0, now_ms=now_ms, last_timestamp_ms=0))
