"""``tidelog format``: prepares the log dirs of a node, with the flags of ``kafka-storage format``."""

from __future__ import annotations

import random
import secrets
import sys

import click

from tidelog.cli.settings_files import node_config
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.snapshot import scram_record
from tidelog.metadata.supported_features import KRAFT_VERSION, METADATA_VERSION, metadata_version_name
from tidelog.model.errors import ConfigError
from tidelog.model.ids import uuid_from_text
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.raft.format import FormatRequest, feature_levels, format_dirs, parse_initial_controllers
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint
from tidelog.security.scram import credential_of
from tidelog.security.scram_text import parse_scram
from tidelog.server import component_settings
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import system_now_ms
from tidelog.server.serving.securing import check_stores

SALT_BYTES = 24


@click.command("format", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config", "-c", "properties", required=True, type=click.Path(exists=True, dir_okay=False), help="server.properties"
)
@click.option("--cluster-id", "-t", help="The cluster's id (tidelog random-uuid). [a new one]")
@click.option("--standalone", "-s", is_flag=True, help="The only voter of a quorum that others may join later.")
@click.option(
    "--initial-controllers", "-I", metavar="ID@HOST:PORT:DIRECTORY,...", help="The first voters of a quorum that can change."
)
@click.option("--no-initial-controllers", "-N", is_flag=True, help="This node finds its quorum and joins it, or only observes.")
@click.option("--ignore-formatted", "-g", is_flag=True, help="Pass over directories that are formatted already.")
@click.option("--feature", "-f", "features", multiple=True, metavar="NAME=LEVEL", help="The level of a feature.")
@click.option(
    "--add-scram",
    "-S",
    "scram",
    multiple=True,
    metavar="SCRAM-SHA-512=[name=USER,password=...]",
    help="A first user, for SCRAM before there is a cluster to ask; iterations, salt and saltedpassword as for kafka-configs.",
)
@click.option("--release-version", "-r", help="The features of that release, such as 4.3-IV0.")
def command(
    properties: str,
    cluster_id: str | None,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    ignore_formatted: bool,
    features: tuple[str, ...],
    scram: tuple[str, ...],
    release_version: str | None,
) -> None:
    """Prepare the log dirs that a server.properties names."""
    try:
        config = node_config(properties)
        request = FormatRequest(
            log_dirs=component_settings.log_dirs(config),
            node_id=config.node_id,
            cluster_id=_checked(cluster_id),
            metadata_log_dir=config.metadata_log_dir or "",
            levels=feature_levels(features, release_version),
            standalone=_voter_endpoints(config) if standalone else None,
            initial_voters=_initial_voters(config, initial_controllers),
            ignore_formatted=ignore_formatted,
            scram=_first_users(scram),
        )
        _check_quorum(config, standalone, initial_controllers, no_initial_controllers)
        _warn_of_stores(config)
        result = format_dirs(DiskFileSystem(), request, rng=random.SystemRandom(), now_ms=system_now_ms())
    except (ConfigError, OSError) as error:
        print(f"tidelog: {error}", file=sys.stderr)
        sys.exit(1)
    if not result.formatted:
        print("Nothing to do: every log directory is already formatted.")
    version = metadata_version_name(request.levels[METADATA_VERSION])
    for log_dir in result.formatted:
        voter = (standalone or initial_controllers) and log_dir == (request.metadata_log_dir or request.log_dirs[0])
        kind = "dynamic metadata voter" if voter else "metadata" if log_dir == request.log_dirs[0] else "data"
        print(f"Formatting {kind} directory {log_dir} with {METADATA_VERSION} {version}.")


def _first_users(texts: tuple[str, ...]) -> list[UserScramCredentialRecord]:
    users: dict[tuple[str, int], UserScramCredentialRecord] = {}
    for text in texts:
        given = parse_scram(text, secrets.token_bytes(SALT_BYTES), "--add-scram", named=True)
        if (given.name, given.mechanism) in users:
            raise ConfigError(f"--add-scram names {given.name} with {given.mechanism.title} twice.")
        stored = credential_of(given.mechanism, given.salted, given.salt, given.iterations)
        users[given.name, given.mechanism] = scram_record(given.name, given.mechanism, stored)
    return list(users.values())


def _checked(cluster_id: str | None) -> str:
    if cluster_id is None:
        return ""
    try:
        uuid_from_text(cluster_id)
    except ValueError as error:
        raise ConfigError(f"--cluster-id: {error}; tidelog random-uuid prints a good one.") from error
    return cluster_id


def _voter_endpoints(config: BrokerConfig) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(point.listener, point.host or "localhost", point.port) for point in config.controller_endpoints)


def _initial_voters(config: BrokerConfig, text: str | None) -> VoterSet | None:
    if text is None:
        return None
    if not config.controller_endpoints:
        raise ConfigError("--initial-controllers needs a controller listener: set controller.listener.names and listeners.")
    return parse_initial_controllers(text, config.controller_listener_names[0].upper())


def _warn_of_stores(config: BrokerConfig) -> None:
    """Certificates may come to the machine after its log dirs are formatted; Kafka's tool does not look at them."""
    try:
        check_stores(config)
    except (ConfigError, OSError) as error:
        print(f"tidelog: a node would not start with these settings: {error}", file=sys.stderr)


def _check_quorum(config: BrokerConfig, standalone: bool, initial: str | None, no_initial: bool) -> None:
    """Checks that the voters are given exactly once, by the file or by a flag."""
    given = [
        flag
        for flag, is_given in (
            ("--standalone", standalone),
            ("--initial-controllers", initial is not None),
            ("--no-initial-controllers", no_initial),
        )
        if is_given
    ]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} cannot be given together: each says who votes.")
    if given and config.voters:
        raise ConfigError(f"You cannot specify {given[0]} and also have controller.quorum.voters set.")
    if standalone and not config.controller_endpoints:
        raise ConfigError("--standalone needs a controller listener: set controller.listener.names and listeners.")
    if not given and not config.voters and not config.embedded:
        raise ConfigError(
            f"controller.quorum.voters is not set, so say who votes: --standalone makes node {config.node_id} the only voter, "
            f"--initial-controllers names several, --no-initial-controllers leaves it to the quorum, all with {KRAFT_VERSION} 1."
        )


if __name__ == "__main__":
    command(prog_name="tidelog format")
