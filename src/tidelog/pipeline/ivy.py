"""Where jars come from: Ivy, which PySpark ships, with the repository that this machine's settings name.

By itself Spark also asks a repository of its own (``spark-packages``), which is slow where it cannot be reached; so sessions get
settings with one repository: ``DEFAULT_ARTIFACT_REPOSITORY``, as for Spark; else the mirror of ``central`` in Maven's
``settings.xml``; else Ivy's ``central``. A user's ``spark.jars.ivySettings`` replaces all of this.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from tidelog.model.errors import ConfigError

REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"
_TIMEOUT_S = 300
_VARIABLE = re.compile(r"\$\{env\.(\w+)\}")


def settings_text(repository: str) -> str:
    """Ivy's settings for one repository in Maven's layout; empty: Ivy's own ``central``."""
    root = f" root={quoteattr(repository)}" if repository else ""
    return (
        '<ivysettings><settings defaultResolver="central"/><resolvers>'
        f'<ibiblio name="central" m2compatible="true"{root}/></resolvers></ivysettings>\n'
    )


def repository_of(environment: Mapping[str, str], home: Path) -> str:
    """The repository's URL from the environment or from Maven's settings in ``home``; empty if neither names one."""
    return environment.get(REPOSITORY, "") or _mirror(home / ".m2" / "settings.xml", environment)


def _mirror(settings: Path, environment: Mapping[str, str]) -> str:
    try:
        root = ElementTree.fromstring(settings.read_bytes())
    except OSError:
        return ""
    except ElementTree.ParseError as error:
        raise ConfigError(f"{settings} cannot be read as XML ({error}): correct it, or set {REPOSITORY}.") from None
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        of = [name.strip() for name in mirror.findtext("{*}mirrorOf", "").split(",")]
        if "!central" not in of and {"central", "*", "external:*"}.intersection(of):
            url = mirror.findtext("{*}url", "").strip()
            return _VARIABLE.sub(lambda found: environment.get(found[1], ""), url)
    return ""


def retrieve(module: tuple[str, str, str], target: Path, settings: str) -> None:
    """Fetch the jar of a module (group, artifact, version) without its dependencies into ``target``, ARTIFACT-VERSION.jar.

    ``settings`` is Ivy's settings file. ConfigError has Ivy's message when there is no such jar.
    """
    pattern = target.parent / "[artifact]-[revision].[ext]"
    command = [_java(os.environ), "-jar", str(_program()), "-warn", "-settings", settings, "-dependency", *module]
    command += ["-confs", "default", "-notransitive", "-retrieve", str(pattern)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"Ivy did not run: {error}") from None
    if not target.exists():
        said = [line.strip(" :\t") for line in (done.stdout + done.stderr).splitlines()]
        raise ConfigError(next((line for line in said if "not found" in line or "rror" in line), "Ivy found no jar"))


def _java(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _program() -> Path:
    """Ivy's jar, from Spark's."""
    import pyspark

    folder = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise ConfigError(f"{folder} has no ivy-*.jar, which Spark resolves packages with: is SPARK_HOME right?")
    return found[-1]
