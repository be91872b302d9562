"""Topics as DataFrames: ``spark.readStream.format("tidelog")`` and ``spark.read.format("tidelog")``, without a connector jar.

Installed by the extra ``tidelog[spark]``; nothing else in tidelog imports this package, and of tidelog it imports only the
protocol side (``client`` and below): it reads from any Kafka cluster. What is decided where: ``options`` what the user asked for,
``planning`` which offsets a batch has, ``cluster`` how they are fetched, ``decoding`` and ``columns`` how record
batches become columns, ``source`` what Spark sees of it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.spark.source import TidelogDataSource

__all__ = ["TidelogDataSource", "register"]


def register(session: Any) -> None:
    """Make ``format("tidelog")`` known to a Spark session. ConfigError when its PySpark is one this does not work with."""
    from tidelog.spark.source import TidelogDataSource
    from tidelog.spark.versions import check_versions

    check_versions()
    context = session.sparkContext
    # Spark's workers are "python3" from PATH unless told otherwise: on this machine, they are to be what runs here.
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ and context.pythonExec == "python3":
        context.pythonExec = sys.executable
    # Without it Spark 4.2 refuses to make a batch reader that could use conditions, instead of giving it none.
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(TidelogDataSource)


def __getattr__(name: str) -> Any:
    # Spark is imported by whoever asks for the source, not by whoever imports a module of this package.
    if name == "TidelogDataSource":
        from tidelog.spark.source import TidelogDataSource

        return TidelogDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
