"""``tidelog format``: prepares the log dirs of a node, with the flags of ``kafka-storage format``."""

from __future__ import annotations

import random
import sys

import click

from tidelog.config.properties import parse
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.features import KRAFT_VERSION, METADATA_VERSION, metadata_version_name
from tidelog.model.errors import ConfigError
from tidelog.model.ids import uuid_from_text
from tidelog.raft.format import FormatRequest, feature_levels, format_dirs
from tidelog.records.control import Endpoint
from tidelog.server import settings
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import system_now_ms


@click.command("format", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config", "-c", "properties", required=True, type=click.Path(exists=True, dir_okay=False), help="server.properties"
)
@click.option("--cluster-id", "-t", help="The cluster's id (tidelog random-uuid). [a new one]")
@click.option("--standalone", "-s", is_flag=True, help="The only voter of a quorum that others may join later.")
@click.option("--ignore-formatted", "-g", is_flag=True, help="Pass over directories that are formatted already.")
@click.option("--feature", "-f", "features", multiple=True, metavar="NAME=LEVEL", help="The level of a feature.")
@click.option("--release-version", "-r", help="The features of that release, such as 4.3-IV0.")
def command(
    properties: str,
    cluster_id: str | None,
    standalone: bool,
    ignore_formatted: bool,
    features: tuple[str, ...],
    release_version: str | None,
) -> None:
    """Prepare the log dirs that a server.properties names."""
    try:
        with open(properties, encoding="utf-8") as file:
            config = BrokerConfig.from_properties(parse(file.read()))
        request = FormatRequest(
            log_dirs=settings.log_dirs(config),
            node_id=config.node_id,
            cluster_id=_checked(cluster_id),
            metadata_log_dir=config.metadata_log_dir or "",
            levels=feature_levels(features, release_version),
            standalone=_voter_endpoints(config) if standalone else None,
            ignore_formatted=ignore_formatted,
        )
        _check_quorum(config, standalone)
        result = format_dirs(DiskFileSystem(), request, rng=random.SystemRandom(), now_ms=system_now_ms())
    except (ConfigError, OSError) as error:
        print(f"tidelog: {error}", file=sys.stderr)
        sys.exit(1)
    if not result.formatted:
        print("All of the log directories are already formatted.")
    version = metadata_version_name(request.levels[METADATA_VERSION])
    for log_dir in result.formatted:
        voter = standalone and log_dir == (request.metadata_log_dir or request.log_dirs[0])
        kind = "dynamic metadata voter" if voter else "metadata" if log_dir == request.log_dirs[0] else "data"
        print(f"Formatting {kind} directory {log_dir} with {METADATA_VERSION} {version}.")


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


def _check_quorum(config: BrokerConfig, standalone: bool) -> None:
    """Who votes must be said once, by the file or by a flag."""
    if standalone and config.voters:
        raise ConfigError("You cannot specify --standalone and also have controller.quorum.voters set.")
    if standalone and not config.controller_endpoints:
        raise ConfigError("--standalone needs a controller listener: set controller.listener.names and listeners.")
    if not standalone and not config.voters and not config.embedded:
        raise ConfigError(
            f"controller.quorum.voters is not set, so say who votes: --standalone makes node {config.node_id} the only voter, "
            f"with {KRAFT_VERSION} 1."
        )


if __name__ == "__main__":
    command(prog_name="tidelog format")
