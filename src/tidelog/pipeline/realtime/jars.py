"""Spark's Kafka connector: its jars, fetched once and compared with their checksums.

They are fetched one by one and without dependencies, because the connector depends on a version of one library (the token
provider) that was never published; the version listed here works.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidelog.model.errors import ConfigError

CONNECTOR_NAME = "spark-sql-kafka-0-10"
Retrieve = Callable[[tuple[str, str, str], Path], None]
"""Fetches the jar of a module (group, artifact, version) into a file. ConfigError when that fails."""


@dataclass(frozen=True, slots=True)
class Jar:
    """An artefact and the SHA-256 of its file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def module(self) -> tuple[str, str, str]:
        """The module in the form of Ivy and Maven."""
        return self.group, self.artifact, self.version


CONNECTOR = (
    Jar(
        "org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1",
        "ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b",
    ),
    Jar(
        "org.apache.kafka", "kafka-clients", "3.9.1",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    ),
    Jar(
        "org.apache.commons", "commons-pool2", "2.12.1",
        "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    ),
)  # fmt: skip
"""The jars for PySpark 4.3.0: there is no connector 4.3.0 yet, and that of 4.2.0 works with it."""


def fetched(folder: Path, retrieve: Retrieve, jars: tuple[Jar, ...] = CONNECTOR) -> list[Path]:
    """The files; those that ``folder`` lacks are fetched. ConfigError when that fails or a checksum differs."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_one(folder, jar, retrieve) for jar in jars]


def _one(folder: Path, jar: Jar, retrieve: Retrieve) -> Path:
    target = folder / jar.name
    if target.exists():
        _check(target, jar)
        return target
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
        fresh = Path(scratch, jar.name)
        try:
            retrieve(jar.module, fresh)
        except ConfigError as error:
            raise ConfigError(
                f"Spark's Kafka connector could not be fetched ({error}): engine: jvm needs it once. Name a repository that this "
                "machine reaches (DEFAULT_ARTIFACT_REPOSITORY, a mirror in Maven's settings.xml, or spark.jars.ivySettings under "
                f"`spark:`), or put {', '.join(one.name for one in CONNECTOR)} into {folder} yourself."
            ) from None
        _check(fresh, jar)
        fresh.replace(target)
    return target


def _check(file: Path, jar: Jar) -> None:
    if hashlib.sha256(file.read_bytes()).hexdigest() != jar.sha256:
        raise ConfigError(
            f"{file.name} has another checksum than expected: delete it from the cache, or find out what changes it on "
            "the way from the repository."
        )
