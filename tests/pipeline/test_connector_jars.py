"""Spark's own resolver fetches the connector's jars from the repository that its settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tidelog.model.errors import ConfigError
from tidelog.pipeline.ivy import retrieve, settings_text

POM = """<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>one_2.13</artifactId>
<version>1.0</version><dependencies><dependency><groupId>org.example</groupId><artifactId>unpublished</artifactId>
<version>9</version></dependency></dependencies></project>"""


def test_a_jar_comes_from_the_repository_of_the_settings_without_what_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Divy.default.ivy.user.dir={tmp_path / 'ivy'}")
    module = tmp_path / "repository" / "org" / "example" / "one_2.13" / "1.0"
    module.mkdir(parents=True)
    (module / "one_2.13-1.0.jar").write_bytes(b"a jar")
    (module / "one_2.13-1.0.pom").write_text(POM)
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(settings_text((tmp_path / "repository").as_uri()))
    (tmp_path / "jars").mkdir()
    target = tmp_path / "jars" / "one_2.13-1.0.jar"
    retrieve(("org.example", "one_2.13", "1.0"), target, str(settings))
    assert target.read_bytes() == b"a jar"
    assert [file.name for file in (tmp_path / "jars").iterdir()] == [target.name]
    with pytest.raises(ConfigError, match=r"not found: org.example#one_2.13;2.0"):
        retrieve(("org.example", "one_2.13", "2.0"), tmp_path / "jars" / "one_2.13-2.0.jar", str(settings))
