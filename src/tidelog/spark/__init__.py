"""Topics as DataFrames: ``spark.readStream.format("tidelog")`` and ``spark.read.format("tidelog")``, without a connector jar.

The extra ``tidelog[spark]`` installs it. Nothing else in tidelog imports this package, and it imports only the protocol side of
tidelog (``client`` and below): it reads from any Kafka cluster. What is decided where: ``options`` the user's settings,
``planning`` the offsets of a batch, ``cluster`` how they are fetched, ``decoding`` and ``columns`` how record batches become
columns, ``source`` the interface to Spark.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.spark.source import TidelogDataSource

__all__ = ["TidelogDataSource", "register"]


def register(session: Any) -> None:
    """Register ``format("tidelog")`` with a Spark session. ConfigError for a version of PySpark that it does not work with."""
    from tidelog.spark.source import TidelogDataSource
    from tidelog.spark.versions import check_versions

    check_versions()
    context = session.sparkContext
    # Spark's workers are "python3" from PATH by default: on this machine they shall be the Python that runs here.
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ and context.pythonExec == "python3":
        context.pythonExec = sys.executable
    # Without it Spark 4.2 refuses to make a batch reader that could use filters, instead of giving it none.
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(TidelogDataSource)


def __getattr__(name: str) -> Any:
    # A module of this package can be imported without Spark; using the source imports it.
    if name == "TidelogDataSource":
        from tidelog.spark.source import TidelogDataSource

        return TidelogDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
