"""The connector's jars: fetched once, and never others than those that were tried."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tidelog.model.errors import ConfigError
from tidelog.pipeline.realtime.jars import CONNECTOR, Jar, fetched

CONTENT = b"a jar"
ONE = Jar("org.nobody", "one_2.13", "1.0", hashlib.sha256(CONTENT).hexdigest())


def repository(folder: Path, content: bytes) -> str:
    file = folder / "repository" / ONE.path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return (folder / "repository").as_uri()


def test_a_jar_is_fetched_and_then_there(tmp_path: Path) -> None:
    root = repository(tmp_path, CONTENT)
    assert [jar.read_bytes() for jar in fetched(tmp_path / "jars", (ONE,), root)] == [CONTENT]
    assert [jar.name for jar in fetched(tmp_path / "jars", (ONE,), "file:///nowhere")] == ["one_2.13-1.0.jar"]
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == ["one_2.13-1.0.jar"]


def test_another_jar_under_its_name_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not the one_2.13-1.0.jar that was tried"):
        fetched(tmp_path / "jars", (ONE,), repository(tmp_path, b"another"))
    assert not list((tmp_path / "jars").iterdir())


def test_a_repository_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"could not be fetched .*put spark-sql-kafka-0-10_2.13-4.2.0.jar, .* into"):
        fetched(tmp_path / "jars", (ONE,), "file:///nowhere")


def test_the_connector_is_what_the_tests_of_the_source_are_held_against() -> None:
    pinned = Path(__file__).parents[3] / "spark" / "connector" / "jars.sha256"
    sums = sorted((jar.name, jar.sha256) for jar in CONNECTOR)
    assert sums == sorted((name, found) for found, name in (line.split() for line in pinned.read_text().splitlines()))
