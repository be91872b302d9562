"""The processes that are killed: a broker, a pipeline, and a Spark cluster of one master and one worker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from tests.interop.nodes import answers, free_ports

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = float(os.environ.get("PIPELINE_KILLS_PATIENCE", "240"))
"""How long anything may take, in seconds: more on a machine that does other work."""
NO_WORKER = "Python worker failed to connect back"
TRIALS = 5
_BATCH = re.compile(r"batch (\d+)  ([\d,]+) records")


class Stuck(Exception):
    """Something did not happen in time; the text has the end of a log."""


def until(condition: Any, what: str, log: Path | None = None, seconds: float = PATIENCE_S) -> None:
    """Wait for a condition. Stuck after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            tail = "" if log is None else f"\n{log}:\n{log.read_text(errors='replace')[-3000:]}"
            raise Stuck(f"{what} did not happen within {seconds:.0f} s{tail}")
        time.sleep(0.05)


def environment() -> dict[str, str]:
    """What child processes need to find this code and this Python."""
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
    }


def _start(command: list[str], log: IO[bytes], *, pipe: bool = False) -> subprocess.Popen[bytes]:
    out = subprocess.PIPE if pipe else log
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment(), start_new_session=True, cwd=ROOT
    )


def processes() -> Iterator[tuple[int, int, str]]:
    """(pid, parent, command line) of all that run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def below(pid: int) -> dict[int, str]:
    """Processes started by ``pid``, by those, and so on, with their command lines."""
    everything = list(processes())
    found: dict[int, str] = {}
    parents = [pid]
    while parents:
        parent = parents.pop()
        for child, its, command in everything:
            if its == parent and child not in found:
                found[child] = command
                parents.append(child)
    return found


def kill(*pids: int) -> None:
    """kill -9, of whatever is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class BrokerProcess:
    """A tidelog node on a port and a folder that stay."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self.port,) = free_ports(1)
        self._log = (folder / "broker.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "tidelog.cli.main", "start", "--port", str(self.port), "--data"]
        self._process = _start([*command, str(self._folder / "broker")], self._log)
        until(lambda: answers(self.port), "the broker's start", self._folder / "broker.log", 60)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            kill(self._process.pid)
            self._process.wait()
            self._process = None


class PipelineProcess:
    """``tidelog pipeline run``: the driver, with its JVM and Python workers."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._file = file
        self.log = folder / "pipeline.log"
        self._written = self.log.open("ab")
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self.batches = 0
        self.ended_alone: list[str] = []

    def start(self, *, once: bool = False) -> None:
        """Start it; it takes a while until there is a batch."""
        self.batches = 0
        command = [sys.executable, "-m", "tidelog.cli.main", "pipeline", "run", str(self._file), *(["--once"] if once else [])]
        self._process = _start(command, self._written, pipe=True)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._written.write(line)
            self._written.flush()
            if process is self._process and _BATCH.search(line.decode(errors="replace")):
                self.batches += 1

    @property
    def begun(self) -> bool:
        """Whether Python workers run: a batch is planned, read or written."""
        return self._process is not None and any(
            "pyspark" in line and "java" not in line for line in below(self._process.pid).values()
        )

    @property
    def running(self) -> bool:
        """Whether its main process is there."""
        return self._process is not None and self._process.poll() is None

    def wait_for_batch(self) -> None:
        """Until a batch more is done; one that ended by itself is started again, and noted."""
        before = self.batches

        def done() -> bool:
            nonlocal before
            if not self.running:
                self.ended_alone.append(self.log.read_text(errors="replace")[-400:])
                self.kill(everything=True)
                self.start()
                before = 0
            return self.batches > before

        until(done, "a batch", self.log)

    def kill(self, *, everything: bool) -> None:
        """kill -9 of the driver (Python and JVM), or of all that it has started too. Workers that are left end by themselves."""
        if self._process is None:
            return
        children = below(self._process.pid)
        drivers = [pid for pid, command in children.items() if "java" in command.split(" ")[0]]
        kill(self._process.pid, *(children if everything else drivers))
        self._process.wait()
        if self._reader is not None:
            self._reader.join(10)
        self._process = None

    def finish(self) -> int:
        """Let it read what is there, and end. Its exit status. Where Spark's ten seconds for a Python process were too few
        for the machine, it is started again, and noted."""
        while True:
            self.kill(everything=True)
            self.start(once=True)
            process = self._process
            assert process is not None
            until(lambda: not self.running, "the last run", self.log, 2 * PATIENCE_S)
            self._process = None
            said = self.log.read_text(errors="replace")[-400:]
            if process.returncode == 0 or NO_WORKER not in said or len(self.ended_alone) == TRIALS:
                return process.returncode
            self.ended_alone.append(said)


class SparkCluster:
    """A master and a worker of Spark's standalone mode."""

    def __init__(self, folder: Path, cores: int = 2) -> None:
        found = find_spec("pyspark")
        assert found is not None and found.origin is not None, "PySpark is installed"
        self._home = Path(found.origin).parent
        self._folder, self._cores = folder, cores
        self.port, self._ui, self._worker_ui = free_ports(3)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """For ``spark.master``."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start both and wait for the worker to be registered."""
        log = self._folder / "spark-cluster.log"
        spark_class, written = str(self._home / "bin" / "spark-class"), log.open("ab")
        host = ["--host", "127.0.0.1"]
        master = "org.apache.spark.deploy.master.Master"
        ports = ["--port", str(self.port), "--webui-port", str(self._ui)]
        self._processes.append(_start([spark_class, master, *host, *ports], written))
        until(lambda: "Starting Spark master" in log.read_text(errors="replace"), "the master's start", log, 120)
        worker = "org.apache.spark.deploy.worker.Worker"
        more = ["--cores", str(self._cores), "--memory", "2g", "--work-dir", str(self._folder / "work")]
        ports = ["--webui-port", str(self._worker_ui)]
        self._processes.append(_start([spark_class, worker, *host, *ports, *more, self.master], written))
        until(lambda: "Successfully registered with master" in log.read_text(errors="replace"), "the worker's start", log, 120)

    def executors(self) -> list[int]:
        """The pids of executors that run."""
        return [
            pid
            for process in self._processes
            for pid, command in below(process.pid).items()
            if "CoarseGrainedExecutorBackend" in command and "java" in command.split(" ")[0]
        ]

    def stop(self) -> None:
        """End it and all that it started."""
        for process in self._processes:
            kill(*below(process.pid), process.pid)
            process.wait()
        self._processes.clear()
        shutil.rmtree(self._folder / "work", ignore_errors=True)
