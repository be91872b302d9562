"""Spark's Kafka connector: which jars it is, fetched once and compared with their sums.

One by one and not as a package with all that it asks for, because the connector asks for a library (the token provider) that is
not published in its version; the one that is does as well.
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
"""Puts the jar of a module (group, artifact, version) into a file; ConfigError when it cannot be had."""


@dataclass(frozen=True, slots=True)
class Jar:
    """An artefact and the SHA-256 of its file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def module(self) -> tuple[str, str, str]:
        """As Ivy and Maven name it."""
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
"""What PySpark 4.3.0 runs with: there is no connector 4.3.0 yet, and that of 4.2.0 works there."""


def fetched(folder: Path, retrieve: Retrieve, jars: tuple[Jar, ...] = CONNECTOR) -> list[Path]:
    """The files, fetched where they are not in ``folder`` yet. ConfigError when they cannot be had or are others."""
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
            f"{file.name} is not the one that was tried: remove it from the cache, or see what is between here and the "
            "repository."
        )
