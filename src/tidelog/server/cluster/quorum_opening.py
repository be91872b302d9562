"""A process's member of the metadata quorum, opened as its settings say: voters, endpoints, timeouts."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import NamedTuple

from tidelog.broker import controller_reports
from tidelog.config.listeners import EndPoint, parse_address
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.config_validation import OptionRules
from tidelog.controller.quorum_member import MemberConfig, QuorumMember
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError
from tidelog.model.ids import Uuid, random_uuid, uuid_to_text
from tidelog.model.ports import FileSystem
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server import component_settings
from tidelog.server.runtime import LoopRuntime


class MetadataDir(NamedTuple):
    """The log dir of the metadata log."""

    fs: FileSystem
    path: str
    directory_id: bytes
    cluster_id: str


def open_member(
    config: BrokerConfig,
    runtime: LoopRuntime,
    where: MetadataDir,
    *,
    ports: Mapping[str, int],
    partition_dir: str | None = None,
) -> QuorumMember:
    """Recovers the metadata log; blocks. ``ports``: those of the controller's listeners by name, which replace port 0.
    ``partition_dir``: see ``MemberConfig``.

    ConfigError when no voters are known; MetadataLogError, UnsupportedFeatureLevel or StorageFailure as for ``QuorumMember``.
    """
    endpoints = _advertised(config, ports)
    member = QuorumMember.open(
        where.fs,
        MemberConfig(
            raft=_raft_config(config, where, endpoints),
            log_dir=where.path,
            controller=controller_reports.controller_image(config.node_id, random_uuid(runtime.rng), endpoints),
            configured=_configured(config),
            log=component_settings.metadata_log_config(config),
            settings=component_settings.controller_settings(config),
            partition_dir=partition_dir,
        ),
        rng=runtime.rng,
        rules=OptionRules(config),
        now_ms=runtime.now_ms(),
        steady_ms=runtime.real_ms(),
    )
    _check_voters(config, member)
    return member


def _advertised(config: BrokerConfig, ports: Mapping[str, int]) -> list[EndPoint]:
    told = {point.listener: point for point in config.advertised_endpoints}
    found = [told.get(point.listener, point) for point in config.controller_endpoints]
    return [
        EndPoint(each.listener, each.protocol, each.host or socket.gethostname(), each.port or ports[each.listener])
        for each in found
    ]


def _configured(config: BrokerConfig) -> VoterSet:
    """``controller.quorum.voters``. A node started without ``process.roles`` is the only voter and has no address for
    others."""
    if config.embedded and not config.voters and not config.controller_quorum_bootstrap_servers:
        return VoterSet.of([Voter(config.node_id, bytes(16), ())])
    name = _first_listener(config) or "CONTROLLER"
    return VoterSet.of(Voter(each.id, bytes(16), (Endpoint(name, each.host, each.port),)) for each in config.voters)


def _first_listener(config: BrokerConfig) -> str:
    """Where this node reaches controllers, as Kafka does: the first of ``controller.listener.names``."""
    return config.controller_listener_names[0].upper() if config.controller_listener_names else ""


def _raft_config(config: BrokerConfig, where: MetadataDir, endpoints: list[EndPoint]) -> RaftConfig:
    return RaftConfig(
        ReplicaKey(config.node_id, Uuid(where.directory_id)),
        where.cluster_id,
        tuple(Endpoint(point.listener, point.host, point.port) for point in endpoints),
        bootstrap=tuple(
            parse_address("controller.quorum.bootstrap.servers", each) for each in config.controller_quorum_bootstrap_servers
        ),
        can_vote=config.is_controller,
        auto_join=config.is_controller and config.controller_quorum_auto_join_enable,
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        answer_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        first_listener=_first_listener(config),
    )


def _check_voters(config: BrokerConfig, member: QuorumMember) -> None:
    voters, me = member.machine.voters, member.machine.quorum.me
    if not voters.voters and not member.config.raft.bootstrap:
        raise ConfigError(
            "No voters of the metadata quorum: set controller.quorum.bootstrap.servers, or controller.quorum.voters, or "
            "format with --standalone or --initial-controllers."
        )
    if config.is_controller and not config.controller_endpoints and not member.machine.quorum.is_only_voter:
        known = ", ".join(f"{each.voter_id} ({uuid_to_text(each.directory_id)})" for each in voters.voters) or "none"
        raise MetadataLogError(
            f"the voters of the metadata quorum are {known}, not only node {me.id} with directory id "
            f"{uuid_to_text(me.directory_id)}, and this node has no listener on which they could reach it. Set "
            "process.roles, controller.listener.names and a listener of that name; or start it with the node.id and the "
            "directory it was formatted with"
        )
