"""Which PySpark and pyarrow this package works with, checked where a session is made rather than where it first fails."""

from __future__ import annotations

import re
from importlib import metadata

from tidelog.model.errors import ConfigError

OLDEST_PYSPARK = (4, 1)
NEWEST_PYSPARK = (4, 3)
OLDEST_PYARROW = (15, 0)
INSTALL = "pip install 'tidelog[spark]'"


def _version(package: str) -> tuple[int, int] | None:
    try:
        found = re.match(r"(\d+)\.(\d+)", metadata.version(package))
    except metadata.PackageNotFoundError:
        return None
    return (int(found[1]), int(found[2])) if found else None


def check_versions() -> tuple[int, int]:
    """The version of PySpark. ConfigError says what to install when it or pyarrow is missing, too old or unknown."""
    spark, arrow = _version("pyspark"), _version("pyarrow")
    if spark is None or arrow is None:
        raise ConfigError(f"{'pyspark' if spark is None else 'pyarrow'} is not installed: {INSTALL}.")
    if not OLDEST_PYSPARK <= spark <= NEWEST_PYSPARK:
        raise ConfigError(
            f"PySpark {spark[0]}.{spark[1]} is installed; tried and tested are {OLDEST_PYSPARK[0]}.{OLDEST_PYSPARK[1]} to "
            f"{NEWEST_PYSPARK[0]}.{NEWEST_PYSPARK[1]}, and 4.2 is the default: {INSTALL}."
        )
    if arrow < OLDEST_PYARROW:
        raise ConfigError(f"pyarrow {arrow[0]}.{arrow[1]} is too old for this PySpark: {INSTALL}.")
    return spark
