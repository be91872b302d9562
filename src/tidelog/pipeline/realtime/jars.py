"""Spark's Kafka connector: which jars it is, fetched once from Maven Central and held against their sums.

By itself and not by Ivy, because the connector asks for a library (the token provider) that is not published in its version; the
one that is does the same.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tidelog.model.errors import ConfigError

CENTRAL = "https://repo.maven.apache.org/maven2"
_TIMEOUT_S = 60
_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Jar:
    """An artefact of Maven Central and the SHA-256 of its file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Below a repository's root."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


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


def fetched(folder: Path, jars: tuple[Jar, ...] = CONNECTOR, repository: str = CENTRAL) -> list[Path]:
    """The files, fetched where they are not in ``folder`` yet. ConfigError when they cannot be had or are others."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_one(folder, jar, repository) for jar in jars]


def _one(folder: Path, jar: Jar, repository: str) -> Path:
    target = folder / jar.name
    if target.exists():
        content = target.read_bytes()
    else:
        try:
            with urllib.request.urlopen(f"{repository}/{jar.path}", timeout=_TIMEOUT_S) as answer:
                content = answer.read(_LARGEST)
        except OSError as error:
            raise ConfigError(
                f"Spark's Kafka connector could not be fetched ({error}): engine: jvm needs it once. Let this machine reach "
                f"{repository} (https_proxy is heeded), or put {', '.join(one.name for one in CONNECTOR)} into {folder} yourself."
            ) from None
    if hashlib.sha256(content).hexdigest() != jar.sha256:
        raise ConfigError(
            f"{target} is not the {jar.name} that was tried: remove it, or see what is between here and {repository}."
        )
    if not target.exists():
        fresh = target.with_name(f".{jar.name}.{os.getpid()}")
        fresh.write_bytes(content)
        fresh.replace(target)
    return target
