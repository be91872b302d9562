"""features: levels shown, moved, mapped; its lines, against a node."""

import json

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.features import command, release_levels


def run(server: str, *words: str) -> Result:
    return CliRunner().invoke(command, ["--bootstrap-server", server, *words])


def test_features_are_described_in_kafkas_columns(server: str) -> None:
    lines = run(server, "describe").stdout.splitlines()
    (version,) = (line for line in lines if line.startswith("Feature: metadata.version "))
    assert version.startswith(
        "Feature: metadata.version                          SupportedMinVersion: 3.3-IV3          "
        "SupportedMaxVersion: 4.4-IV0          FinalizedVersionLevel: 4.3-IV0          Epoch: "
    )
    rows = {row["feature"]: row for row in json.loads(run(server, "describe", "--output", "json", "--node-id", "1").stdout)}
    assert rows["group.version"]["level"] == "1"


def test_a_level_goes_down_and_up_again(server: str) -> None:
    asked = run(server, "downgrade", "--feature", "transaction.version=1", "--dry-run")
    assert asked.stdout == "transaction.version can be downgraded to 1.\n"
    assert run(server, "disable", "--feature", "transaction.version").stdout == "transaction.version was disabled.\n"
    assert run(server, "upgrade", "--feature", "transaction.version=2").stdout == "transaction.version was upgraded to 2.\n"


def test_what_is_refused_says_so_for_each_and_counts(server: str) -> None:
    result = run(server, "upgrade", "--feature", "group.version=9", "--feature", "transaction.version=2", "--dry-run")
    assert result.exit_code == 1
    assert result.stdout.startswith("Can not upgrade group.version to 9. ")
    assert result.stdout.splitlines()[1].startswith("Can not upgrade transaction.version to 2. ")
    assert result.stderr == "2 out of 2 operation(s) failed.\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["upgrade"], "Name what to upgrade with --feature NAME=LEVEL"),
        (["upgrade", "--feature", "abc"], "abc has no equals sign"),
        (["upgrade", "--feature", "abc=x"], "the level x is not a number"),
        (["upgrade", "--feature", "a=1", "--feature", "a=2"], "--feature a is there twice"),
        (["upgrade", "--release-version", "4.3", "--feature", "a=1"], "--release-version sets all levels"),
        (["version-mapping", "--release-version", "9.9"], "Unknown metadata.version '9.9'"),
        (["feature-dependencies", "--feature", "foo=1"], "Unknown feature: foo"),
        (["feature-dependencies", "--feature", "group.version=7"], "no level 7"),
    ],
)
def test_what_makes_no_sense_is_refused_without_asking(words: list[str], says: str) -> None:
    result = CliRunner().invoke(command, ["--bootstrap-server", "nowhere:1", *words])
    assert result.exit_code == 1
    assert says in result.stderr


def test_releases_map_to_levels() -> None:
    assert list(release_levels("3.9-IV0").items())[:4] == [
        ("metadata.version", 21),
        ("kraft.version", 1),
        ("transaction.version", 0),
        ("group.version", 0),
    ]
    assert (release_levels("3.8")["kraft.version"], release_levels("4.3")["transaction.version"]) == (0, 2)
    with pytest.raises(CommandFailed, match="Unknown metadata"):
        release_levels("0.8")
    assert CliRunner().invoke(command, ["version-mapping"]).stdout.startswith("metadata.version=31 (4.4-IV0)\nkraft.version=1\n")
    dependencies = CliRunner().invoke(command, ["feature-dependencies", "--feature", "metadata.version=20"])
    assert dependencies.stdout == "metadata.version=20 (3.8-IV0) has no dependencies.\n"
