"""``tidelog features``, also installed as ``kafka-features``: shows and changes the levels of a cluster's features (KIP-584)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.controller_session import target, target_options
from tidelog.cli.refusal import CommandFailed

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
TYPES_FROM = 1
"""From this version on UpdateFeatures has two kinds of downgrades; before, only a flag for one."""
Target = tuple[str | None, str | None, str | None]
feature_option = click.option("--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature and its level.")
release_option = click.option("--release-version", help="All features as of that release, such as 4.3-IV0.")
metadata_option = click.option("--metadata", hidden=True, help="A release, for metadata.version alone.")
unsafe_option = click.option("--unsafe", is_flag=True, help="Though metadata may be lost by it.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Ask whether it can be done, and change nothing.")


@click.group("features", context_settings={"help_option_names": ["-h", "--help"]})
@target_options
@click.pass_context
def command(
    ctx: click.Context, bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None
) -> None:
    """Show and change the levels of features."""
    ctx.obj = bootstrap_server, bootstrap_controller, command_config


@command.command()
@click.option("--node-id", type=int, help="Which broker is asked. [any]")
@columns.output_option
@click.pass_obj
def describe(flags: Target, node_id: int | None, output: str) -> None:
    """Show each feature: what is supported, and what the cluster is at."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.controller_session import session
    from tidelog.protocol.messages.api_versions import ApiVersionsRequest

    bootstrap, controllers = target(flags[0], flags[1])
    with refusal.one_line(""), session(bootstrap, controllers, flags[2]) as connected:
        if node_id is not None and not isinstance(connected, AdminSession):
            raise CommandFailed("--node-id goes with --bootstrap-server: name the controller's own address instead.")
        asked = connected.connection(node_id) if isinstance(connected, AdminSession) and node_id is not None else connected
        response = asked.ask(ApiVersionsRequest(client_software_name="tidelog", client_software_version="0"))
        refusal.check(response.error_code)
        rows = feature_rows(response)
    if output == "json":
        print(columns.as_json(rows))
        return
    for row in rows:
        print(
            f"Feature: {row['feature']:<42}SupportedMinVersion: {row['min']:<17}SupportedMaxVersion: {row['max']:<17}"
            f"FinalizedVersionLevel: {row['level']:<17}Epoch: {row['epoch']}"
        )


def feature_rows(response: Any) -> list[dict[str, str]]:
    """The features in an ApiVersions response, by name."""
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    epoch = response.finalized_features_epoch
    return [
        {
            "feature": each.name,
            "min": _level(each.name, each.min_version),
            "max": _level(each.name, each.max_version),
            "level": _level(each.name, levels.get(each.name, 0)),
            "epoch": "-" if epoch < 0 else str(epoch),
        }
        for each in sorted(response.supported_features, key=lambda each: each.name)
    ]


def _level(name: str, level: int) -> str:
    from tidelog.metadata.supported_features import METADATA_VERSION, metadata_version_name

    return metadata_version_name(level) if name == METADATA_VERSION and level else str(level)


@command.command()
@feature_option
@release_option
@metadata_option
@dry_run_option
@click.pass_obj
def upgrade(flags: Target, features: tuple[str, ...], release_version: str | None, metadata: str | None, dry_run: bool) -> None:
    """Raise the levels of features."""
    _update(flags, "upgrade", lambda: _wanted(features, release_version, metadata, "upgrade"), UPGRADE, dry_run)


@command.command()
@feature_option
@release_option
@metadata_option
@unsafe_option
@dry_run_option
@click.pass_obj
def downgrade(
    flags: Target, features: tuple[str, ...], release_version: str | None, metadata: str | None, unsafe: bool, dry_run: bool
) -> None:
    """Lower the levels of features."""
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    _update(flags, "downgrade", lambda: _wanted(features, release_version, metadata, "downgrade"), kind, dry_run)


@command.command()
@click.option("--feature", "features", multiple=True, metavar="NAME", help="A feature.")
@unsafe_option
@dry_run_option
@click.pass_obj
def disable(flags: Target, features: tuple[str, ...], unsafe: bool, dry_run: bool) -> None:
    """Lower features to level 0."""
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    if not features:
        refusal.usage("You must specify at least one feature to disable")
    _update(flags, "disable", lambda: dict.fromkeys(features, 0), kind, dry_run)


def _wanted(features: tuple[str, ...], release: str | None, metadata: str | None, what: str) -> dict[str, int]:
    """The levels named by the flags. CommandFailed when there are none, or one is named twice."""
    from tidelog.metadata.supported_features import METADATA_VERSION, metadata_version_from_name

    if metadata is not None:
        print("--metadata is the old form of --feature metadata.version=LEVEL.")
    if release is not None and (features or metadata):
        raise CommandFailed("--release-version sets all levels: leave out --feature and --metadata.")
    if release is not None:
        return release_levels(release)
    levels: dict[str, int] = {}
    try:
        if metadata is not None:
            levels[METADATA_VERSION] = metadata_version_from_name(metadata)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    for text in features:
        name, level = _feature_level(text)
        if name in levels:
            raise CommandFailed(f"--feature {name} is there twice: keep one.")
        levels[name] = level
    if not levels:
        raise CommandFailed(f"Name what to {what} with --feature NAME=LEVEL")
    return levels


def _feature_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise CommandFailed(f"--feature takes NAME=LEVEL; {text} has no equals sign.")
    if not level.strip().isdecimal():
        raise CommandFailed(f"--feature {text}: the level {level} is not a number.")
    return name.strip(), int(level)


def release_levels(release: str) -> dict[str, int]:
    """Every feature level of a release. CommandFailed for an unknown release."""
    from tidelog.metadata.supported_features import (
        FEATURES,
        KRAFT_VERSION,
        METADATA_VERSION,
        default_levels,
        metadata_version_from_name,
    )

    try:
        level = metadata_version_from_name(release)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    levels = dict.fromkeys((*ORDER, *FEATURES), 0) | default_levels(level)
    levels[METADATA_VERSION] = level
    levels[KRAFT_VERSION] = int(level >= KRAFT_VERSION_FROM)
    return levels


ORDER = ("metadata.version", "kraft.version", "transaction.version", "group.version")
"""Features that Kafka's tool lists first; the others follow in table order."""
KRAFT_VERSION_FROM = 21
"""The metadata.version of the release that introduced kraft.version 1 (KIP-853): 3.9."""
WORDS: Mapping[str, tuple[str, str]] = {
    "upgrade": ("upgraded to {level}", "upgrade {name} to {level}"),
    "downgrade": ("downgraded to {level}", "downgrade {name} to {level}"),
    "disable": ("disabled", "disable {name}"),
}
"""Messages for success and failure."""


def _update(flags: Target, what: str, levels_of: Callable[[], dict[str, int]], kind: int, dry_run: bool) -> None:
    """Requests these levels, all or none, and prints the result for each. Exit code 1 when any failed."""
    from tidelog.cli.controller_session import session
    from tidelog.model.errors import ErrorCode
    from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

    bootstrap, controllers = target(flags[0], flags[1])
    with refusal.one_line(""):
        levels = dict(sorted(levels_of().items()))
        with session(bootstrap, controllers, flags[2]) as connected:
            newer = connected.version_of(UpdateFeaturesRequest.API_KEY) >= TYPES_FROM
            how = {"upgrade_type": kind} if newer else {"allow_downgrade": kind != UPGRADE}
            updates = [FeatureUpdateKey(feature=name, max_version_level=level, **how) for name, level in levels.items()]
            response = connected.ask(
                UpdateFeaturesRequest(timeout_ms=connected.timeout_ms, feature_updates=updates, validate_only=dry_run)
            )
    failed: dict[str, str] = {}
    if response.error_code != ErrorCode.NONE:
        failed = dict.fromkeys(levels, response.error_message or refusal.error_text(response.error_code))
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            failed[result.feature] = result.error_message or refusal.error_text(result.error_code)
    done, undone = WORDS[what]
    for name, level in levels.items():
        if name in failed:
            print(f"{'Can' if dry_run else 'Could'} not {undone.format(name=name, level=level)}. {failed[name]}")
        else:
            print(f"{name} {'can be' if dry_run else 'was'} {done.format(level=level)}.")
    if failed:
        sys.stdout.flush()
        print(f"{len(failed)} out of {len(levels)} operation(s) failed.", file=sys.stderr)
        sys.exit(1)


@command.command("version-mapping")
@release_option
@columns.output_option
def version_mapping(release_version: str | None, output: str) -> None:
    """Show the levels of all features as of a release; without one, of the newest. Asks no broker."""
    from tidelog.metadata.supported_features import METADATA_VERSION, METADATA_VERSIONS

    with refusal.one_line(""):
        levels = release_levels(release_version or list(METADATA_VERSIONS)[-1])
    if output == "json":
        print(columns.as_json(levels))
        return
    for name, level in levels.items():
        shown = f" ({_level(name, level)})" if name == METADATA_VERSION else ""
        print(f"{name}={level}{shown}")


@command.command("feature-dependencies")
@click.option("--feature", "features", multiple=True, required=True, metavar="NAME=LEVEL", help="A feature and its level.")
def feature_dependencies(features: tuple[str, ...]) -> None:
    """Show what a level of a feature asks of others. Asks no broker."""
    from tidelog.metadata.supported_features import FEATURES, METADATA_VERSION

    with refusal.one_line(""):
        for text in features:
            name, level = _feature_level(text)
            if name not in FEATURES:
                raise CommandFailed(f"Unknown feature: {name}")
            known = FEATURES[name]
            if not known.min_level <= level <= known.max_level:
                raise CommandFailed(
                    f"Feature {name} has no level {level} that is known here: {known.min_level} to {known.max_level}"
                )
            shown = f" ({_level(name, level)})" if name == METADATA_VERSION else ""
            # No level of any feature in the table depends on another feature.
            print(f"{name}={level}{shown} has no dependencies.")


def main() -> None:
    """``kafka-features``."""
    entry.run(command, "kafka-features")


if __name__ == "__main__":
    main()
