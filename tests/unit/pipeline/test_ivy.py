"""Which repository jars come from."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tidelog.model.errors import ConfigError
from tidelog.pipeline.ivy import repository_of, settings_text

MAVEN = """<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>
<mirror><id>other</id><mirrorOf>snapshots</mirrorOf><url>https://other.example/</url></mirror>
<mirror><id>most</id><mirrorOf>{of}</mirrorOf><url>https://${{env.HOST}}/maven?a=1&amp;b</url></mirror>
</mirrors></settings>"""


def maven(home: Path, of: str) -> Path:
    (home / ".m2").mkdir(exist_ok=True)
    (home / ".m2" / "settings.xml").write_text(MAVEN.format(of=of))
    return home


@pytest.mark.parametrize("of", ["central", "*", "external:*", "internal, central"])
def test_a_mirror_of_central_in_mavens_settings_is_the_repository(tmp_path: Path, of: str) -> None:
    assert repository_of({"HOST": "mirror.example"}, maven(tmp_path, of)) == "https://mirror.example/maven?a=1&b"


def test_the_environment_names_it_before_maven_does(tmp_path: Path) -> None:
    assert repository_of({"DEFAULT_ARTIFACT_REPOSITORY": "file:///jars"}, maven(tmp_path, "*")) == "file:///jars"


def test_without_either_ivy_decides(tmp_path: Path) -> None:
    assert repository_of({}, tmp_path) == ""
    assert repository_of({}, maven(tmp_path, "*,!central")) == ""
    assert "root" not in settings_text("")


def test_a_settings_file_that_is_not_xml_is_reported(tmp_path: Path) -> None:
    maven(tmp_path, "*").joinpath(".m2", "settings.xml").write_text("<settings>")
    with pytest.raises(ConfigError, match="cannot be read as XML"):
        repository_of({}, tmp_path)


def test_ivys_settings_name_the_repository() -> None:
    found = ElementTree.fromstring(settings_text("https://mirror.example/a?b&c"))
    assert [each.attrib["root"] for each in found.iter("ibiblio")] == ["https://mirror.example/a?b&c"]
