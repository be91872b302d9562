"""Which PySpark it works with is checked before anything fails in the middle."""

from __future__ import annotations

from importlib import metadata

import pytest

from tidelog.model.errors import ConfigError
from tidelog.spark.versions import check_versions


def with_versions(monkeypatch: pytest.MonkeyPatch, **installed: str) -> None:
    def version(package: str) -> str:
        if package not in installed:
            raise metadata.PackageNotFoundError(package)
        return installed[package]

    monkeypatch.setattr("tidelog.spark.versions.metadata.version", version)


def test_the_default_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    with_versions(monkeypatch, pyspark="4.2.1", pyarrow="26.0.1")
    assert check_versions() == (4, 2)


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ({}, "pyspark is not installed: pip install"),
        ({"pyspark": "4.2.1"}, "pyarrow is not installed"),
        ({"pyspark": "3.5.7", "pyarrow": "26.0"}, "PySpark 3.5 is installed; tried and tested are 4.1 to"),
        ({"pyspark": "5.0.0", "pyarrow": "26.0"}, "PySpark 5.0 is installed"),
        ({"pyspark": "4.2.1", "pyarrow": "11.0.0"}, "pyarrow 11.0 is too old"),
    ],
)
def test_what_does_not_work_together_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], said: str
) -> None:
    with_versions(monkeypatch, **installed)
    with pytest.raises(ConfigError, match=said):
        check_versions()
