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
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from tests.interop.nodes import answers, free_ports
from tests.pipeline import quick_spark

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = float(os.environ.get("PIPELINE_KILLS_PATIENCE", "240"))
"""How long anything may take, in seconds: more on a machine that does other work."""
NO_WORKER = "Python worker failed to connect back"
TRIALS = 5
PATIENCE_TRIALS = 12
_BATCH = re.compile(r"^(\S+): batch \d+  [\d,]+ records")
SOURCE_RUNNER = "python_streaming_source_runner"


class Stuck(Exception):
    """Something did not happen in time; the text has the end of a log."""


def until(condition: Any, what: str, log: Path | None = None, seconds: float = PATIENCE_S) -> None:
    """Wait for a condition. Stuck after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            tail = "" if log is None else f"\n{log}:\n{log.read_text(errors='replace')[-3000:]}"
            raise Stuck(f"{what} did not happen within {seconds:.0f} s{tail}")
        time.sleep(0.2)


def environment() -> dict[str, str]:
    """What child processes need to find this code and this Python."""
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "SPARK_HOME": str(quick_spark.home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
        # Of a standalone cluster: executors that are killed are no reason to end an application.
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
        "SPARK_DAEMON_MEMORY": "256m",
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
    signal_all(pids, signal.SIGKILL)


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """To whatever is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


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
    """Pipelines in one driver (``driver``), with its JVM and Python workers."""

    def __init__(self, folder: Path, files: list[Path], queries: set[str]) -> None:
        """``queries``: those that say when they have done a batch."""
        self._files, self._queries = files, queries
        self.log = folder / "pipeline.log"
        self._written = self.log.open("ab")
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._begun_at = 0.0
        self.pace = 0.0
        """Seconds from the first query's start to the first batch of the last of them, when that was last seen."""
        self.batches: Counter[str] = Counter()
        self.ended_alone: list[str] = []
        self._asleep: list[subprocess.Popen[bytes]] = []

    def start(self, *, once: bool = False) -> None:
        """Start it; it takes a while until there is a batch."""
        self.batches, self._begun_at = Counter(), 0.0
        command = [sys.executable, "-m", "tests.pipeline.driver", *map(str, self._files), *(["--once"] if once else [])]
        self._process = _start(command, self._written, pipe=True)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._written.write(line)
            self._written.flush()
            batch = _BATCH.search(line.decode(errors="replace"))
            if process is self._process and batch:
                first = self.batches[batch[1]] == 0
                self.batches[batch[1]] += 1
                if first and self._begun_at and self._queries <= self.batches.keys():
                    self.pace = time.monotonic() - self._begun_at

    @property
    def begun(self) -> bool:
        """Whether a query has been started: the Python process of its source is there."""
        found = self._process is not None and any(SOURCE_RUNNER in line for line in below(self._process.pid).values())
        if found and not self._begun_at:
            self._begun_at = time.monotonic()
        return found

    @property
    def running(self) -> bool:
        """Whether its main process is there."""
        return self._process is not None and self._process.poll() is None

    def wait_for_batches(self) -> None:
        """Until every query has done a batch more; a driver that ended by itself is started again, and noted."""
        before = Counter(self.batches)

        def done() -> bool:
            nonlocal before
            if not self.running:
                self.ended_alone.append(self.log.read_text(errors="replace")[-3000:])
                if len(self.ended_alone) > PATIENCE_TRIALS:
                    raise Stuck(f"the driver ends by itself again and again:\n{self.ended_alone[-1]}")
                self.kill(everything=True)
                self.start()
                before = Counter()
            if not self._begun_at:
                _ = self.begun
            return all(self.batches[query] > before[query] for query in self._queries)

        until(done, "a batch of each query", self.log)

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

    def put_to_sleep(self) -> list[int]:
        """Stop it with all that it has started, and let go of it: the pids, to be woken and killed. What it says later counts no
        more."""
        assert self._process is not None
        pids = [self._process.pid, *below(self._process.pid)]
        signal_all(pids, signal.SIGSTOP)
        self._asleep.append(self._process)
        self._process = None
        return pids

    def bury(self) -> None:
        """Kill all that were put to sleep."""
        for process in self._asleep:
            kill(process.pid, *below(process.pid))
            process.wait()
        self._asleep.clear()

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
            said = self.log.read_text(errors="replace")[-8000:]
            if process.returncode == 0 or NO_WORKER not in said or len(self.ended_alone) == TRIALS:
                return process.returncode
            self.ended_alone.append(said)


class SparkCluster:
    """A master and a worker of Spark's standalone mode."""

    def __init__(self, folder: Path, cores: int = 2) -> None:
        self._home = quick_spark.home()
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
