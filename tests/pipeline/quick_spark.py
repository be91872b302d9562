"""A Spark that is quick to start, for drivers that are killed fifty times. Made once for each PySpark, in ``.cache``.

Most of what a start costs is loading code: Java's classes, which an archive of them halves (``-XX:ArchiveClassesAtExit``), and
PySpark in each of a dozen Python processes, which take it from a zip of sources and compile it each time. Here it is the same
PySpark (by links), with the compiled form in the zip as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import _bootstrap_external, metadata
from importlib.util import find_spec, source_hash
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent.parent / ".cache"
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
)
"""The quick compiler only: a driver that is about to be killed has no use for the other one."""


def home() -> Path:
    """For SPARK_HOME."""
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None, "PySpark is installed"
    installed, made = Path(found.origin).parent, CACHE / f"spark-{metadata.version('pyspark')}"
    if (made / "jars").resolve() != (installed / "jars").resolve():  # not made yet, or for an environment that is gone
        shutil.rmtree(made, ignore_errors=True)
        _archive().unlink(missing_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=_cache(), prefix="spark-"))
        libraries = fresh / "python" / "lib"
        libraries.mkdir(parents=True)
        for there in installed.iterdir():
            if there.name != "python":
                (fresh / there.name).symlink_to(there)
        for library in (installed / "python" / "lib").iterdir():
            with_compiled(library, libraries / library.name)
        fresh.rename(made)
    return made


def java_options() -> str:
    """For drivers and executors."""
    made = _archive()
    return f"{QUICK} -XX:SharedArchiveFile={made}" if made.exists() else QUICK


def ensure() -> None:
    """Make what is not there. Without the archive everything works, and slower."""
    environment = os.environ | {"SPARK_HOME": str(home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    if not _archive().exists():
        subprocess.run([sys.executable, "-m", "tests.pipeline.quick_spark"], env=environment, check=False)


def with_compiled(source: Path, target: Path) -> None:
    """A zip of Python sources, with their compiled form added (PEP 552, unchecked: a zip does not change)."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            text = old.read(entry)
            new.writestr(entry, text)
            if entry.filename.endswith(".py"):
                code = compile(text, entry.filename, "exec", dont_inherit=True)
                compiled = _bootstrap_external._code_to_hash_pyc(code, source_hash(text), False)
                new.writestr(entry.filename + "c", compiled)


def _cache() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE


def _archive() -> Path:
    return CACHE / f"spark-{metadata.version('pyspark')}.jsa"


def make_archive() -> None:
    """A session that does a little of everything, and writes down at its end which classes that took."""
    from pyspark.sql import SparkSession

    fresh = _archive().with_suffix(".new")
    settings = {"driver.extraJavaOptions": f"{QUICK} -XX:ArchiveClassesAtExit={fresh}", "ui.enabled": "false"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(100).selectExpr("id", "cast(id as string) name").repartition(2)
        rows.write.parquet(f"{folder}/rows")
        spark.read.parquet(f"{folder}/rows").createOrReplaceTempView("rows")
        spark.sql("SELECT name, count(*) FROM rows GROUP BY name").collect()
        stream = spark.readStream.format("rate").load().writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        query = stream.foreachBatch(lambda frame, number: frame.persist().count()).start()
        query.processAllAvailable()
        query.stop()
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    fresh.rename(_archive())


if __name__ == "__main__":
    make_archive()
