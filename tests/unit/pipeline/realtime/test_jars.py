"""The connector's jars: fetched once, and never others than those that were tried."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tidelog.model.errors import ConfigError
from tidelog.pipeline.realtime.jars import CONNECTOR, Jar, fetched

CONTENT = b"a jar"
ONE = Jar("org.example", "one_2.13", "1.0", hashlib.sha256(CONTENT).hexdigest())


class Repository:
    """Gives this content for each module."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.asked: list[tuple[str, str, str]] = []

    def __call__(self, module: tuple[str, str, str], target: Path) -> None:
        self.asked.append(module)
        target.write_bytes(self._content)


def away(module: tuple[str, str, str], target: Path) -> None:
    raise ConfigError("no route")


def test_a_jar_is_fetched_once(tmp_path: Path) -> None:
    repository = Repository(CONTENT)
    assert [jar.read_bytes() for jar in fetched(tmp_path / "jars", repository, (ONE,))] == [CONTENT]
    assert repository.asked == [("org.example", "one_2.13", "1.0")]
    assert [jar.name for jar in fetched(tmp_path / "jars", away, (ONE,))] == ["one_2.13-1.0.jar"]
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == ["one_2.13-1.0.jar"]


def test_another_jar_under_its_name_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"one_2.13-1.0.jar has another checksum than expected"):
        fetched(tmp_path / "jars", Repository(b"another"), (ONE,))
    assert not list((tmp_path / "jars").iterdir())
    (tmp_path / "jars" / ONE.name).write_bytes(b"another")
    with pytest.raises(ConfigError, match=r"has another checksum than expected"):
        fetched(tmp_path / "jars", away, (ONE,))


def test_the_message_says_which_settings_name_a_repository(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\(no route\).*ARTIFACT_REPOSITORY.*put spark-sql-kafka-0-10_2.13-4.2.0.jar, .* into"):
        fetched(tmp_path / "jars", away, (ONE,))


def test_the_connector_is_the_one_that_tests_of_the_source_use() -> None:
    pinned = Path(__file__).parents[3] / "spark" / "connector" / "jars.sha256"
    sums = sorted((jar.name, jar.sha256) for jar in CONNECTOR)
    assert sums == sorted((name, found) for found, name in (line.split() for line in pinned.read_text().splitlines()))
