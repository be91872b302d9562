"""``python -m bench.processes``: what ``tidelog start --processes`` gains with 1, 2 and 4 processes. Linux only.

Each process may use 0.3 of a core, so that four of them, and the load, fit on a machine with two: then the rate of N processes is
that of N cores, as far as the processes do not hinder each other. Afterwards without the cap, with 1 and 2 processes, which says
what this machine reaches.

All installations run at the same time; the load goes to one after the other, in another order each round, and a ratio is that of
two samples of one round. The load is ``pair/load.c``, one for each node, on partitions that the node leads: the same connections
and requests under way for each process. CPU is that of the nodes and of the supervisor.

The cap is a control group's quota (``cpu.max``, or ``cpu.cfs_quota_us`` of the older groups), for a user who may make one. A
round counts for nothing when other processes had more than 5 % of the machine, and the result says how many there were.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.pair import frames, machine, statistics
from bench.pair.processes import Failed, end, ended_by_signals, free_ports, launch
from bench.pair.programs import NoCompiler, program

SHARE = 0.3
PERIOD_US = 20_000
"""Of the quota: short, so that a throttled process does not stop for long."""
COUNTS = (1, 2, 4)
STEP = 10
PARTITIONS = 4
"""For each node."""
MOST_SAMPLE_BYTES = 128 << 20
"""What one node writes in one sample: all of it stays on the disk until the end."""
VOID_SHARE = 0.05
START_S = 60.0
PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- processes: written by make bench-processes -->", "<!-- end of processes -->"
GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Row:
    """A load: the batch of each request, and for each node its connections and requests under way."""

    name: str
    records: int
    record_bytes: int
    connections: int
    in_flight: int


ROWS = (Row("one record of 100 B", 1, 100, 8, 1), Row("16 records of 1 KiB", 16, 1024, 4, 5))


@dataclass(frozen=True, slots=True)
class Sample:
    """``rate``: requests a second of all nodes; ``cost``: CPU seconds of the nodes for a request; ``load``: the share of a core
    that the generators had; ``others``: the share of the machine that processes had which are not ours."""

    rate: float
    cost: float
    load: float
    others: float


def ask(port: int, request: bytes) -> bytes:
    """The answer to one request, without its length."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(request)
        (length,) = struct.unpack(">i", _read(connection, 4))
        return _read(connection, length)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise Failed("the node closed the connection")
        data += part
    return data


class Installation:
    """A running ``tidelog start --processes``, and its frames."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        folder.mkdir()
        self.port = _free(count)
        command = [sys.executable, "-m", "tidelog.cli.main", "start", "--data", "data", "--port", str(self.port)]
        command += ["--processes", str(count), "-o", "tidelog.http.listener=", "-o", "log.retention.ms=-1"]
        self.process = launch(command, folder / "log", os.environ, folder)
        self._until_ready()
        self.pids = [self.process.pid, *self._nodes()]

    def _nodes(self) -> list[int]:
        if self.count == 1:
            return []
        return [int((self.folder / "data" / "processes" / f"{each}.pid").read_text()) for each in self._ids()]

    def _ids(self) -> range:
        return range(1, self.count + 1)

    def _until_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while "\ntidelog is ready" not in "\n" + (self.folder / "log").read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed((self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def address(self, node_id: int) -> int:
        """The port of a node."""
        return self.port + STEP * node_id if self.count > 1 else self.port

    def prepare(self, row: Row, topic: str) -> None:
        """Makes the row's topic, and the requests for each node's partitions."""
        replicas = [[node_id] for _ in range(PARTITIONS) for node_id in self._ids()]
        code, _ = frames.created(ask(self.port, frames.create_topic(topic, replicas)), topic)
        if code:
            raise Failed(f"topic {topic} cannot be made: error {code}")
        batch = frames.batch(row.records, row.record_bytes)
        for node_id in self._ids():
            own = [index for index, (leader,) in enumerate(replicas) if leader == node_id]
            frames.write_frames(self._frames(node_id), [frames.produce(topic, [index], batch) for index in own])

    def _frames(self, node_id: int) -> Path:
        return self.folder / f"frames-{node_id}"

    def load(self, row: Row, requests: int) -> Sample:
        """All nodes at once, with so many requests each."""
        generator = str(program("load"))
        tail = [str(row.connections), str(row.in_flight), str(requests)]
        before, used = machine.machine(), machine.usage_of(self.pids)
        running = [
            subprocess.Popen(
                [generator, str(self._frames(each)), *tail, str(self.address(each))],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for each in self._ids()
        ]
        told = [each.communicate() for each in running]
        used, after = machine.usage_of(self.pids) - used, machine.machine()
        if any(each.returncode for each in running):
            raise Failed("".join(error for _, error in told))
        results = [json.loads(out) for out, _ in told]
        total, seconds = requests * self.count, max(each["seconds"] for each in results)
        generators = sum(each["user_s"] + each["system_s"] for each in results)
        cpu = used.user + used.system
        others = machine.others_share(before, after, cpu + generators, os.cpu_count() or 1)
        return Sample(total / seconds, cpu / total, generators / seconds, others)

    def close(self) -> None:
        """Stops it."""
        end(self.process)


def _free(count: int) -> int:
    """A port of first contact with the ports above it that the processes need."""
    while True:
        (first,) = free_ports(1)
        with contextlib.suppress(OSError), ExitStack() as probes:
            for port in (first + 1, *(first + STEP * each for each in range(1, count + 1))):
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return first


@contextmanager
def capped(pids: Sequence[int], share: float) -> Iterator[None]:
    """Each of these processes may use this share of a core. Raises Failed when the system does not allow that."""
    made: list[Path] = []
    home = GROUPS / "cpu" if (GROUPS / "cpu" / "cgroup.procs").exists() else GROUPS
    try:
        for pid in pids:
            group = home / f"tidelog-bench-{pid}"
            group.mkdir()
            made.append(group)
            quota = int(share * PERIOD_US)
            if home == GROUPS:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            (group / "cgroup.procs").write_text(str(pid))
        yield
    except PermissionError as error:
        raise Failed(f"no control group can be made here ({error}): run it as a user who may, or with --uncapped") from error
    finally:
        for pid, group in zip(pids, made, strict=False):
            with contextlib.suppress(OSError):
                (home / "cgroup.procs").write_text(str(pid))
            group.rmdir()


def measured(sides: Sequence[Installation], row: Row, rounds: int, seconds: float) -> dict[int, list[Sample]]:
    """Samples of each installation by its number of processes, round by round; rounds that others disturbed are left out."""
    sizes = {}
    for side in sides:
        first = side.load(row, 200 * row.connections)
        most = MOST_SAMPLE_BYTES // (row.records * row.record_bytes)
        sizes[side.count] = max(100, min(most, int(first.rate / side.count * seconds)))
        side.load(row, sizes[side.count])
    found: dict[int, list[Sample]] = {side.count: [] for side in sides}
    rng = random.Random(len(row.name))
    for number in range(rounds):
        taken = {side.count: side.load(row, sizes[side.count]) for side in rng.sample(list(sides), len(sides))}
        worst = max(each.others for each in taken.values())
        words = ", ".join(f"{count}: {taken[count].rate:,.0f}/s {taken[count].cost * 1e6:.1f} us" for count in sorted(taken))
        print(f"  round {number + 1}: {words}; others at most {worst:.0%}", file=sys.stderr, flush=True)
        for count, sample in taken.items():
            found[count].append(sample)
    return found


def table(title: str, found: dict[int, list[Sample]]) -> list[str]:
    """Rows of a table: medians, and ratios to one process, round by round, with their interval."""
    base = found[min(found)]
    good = [number for number in range(len(base)) if all(samples[number].others <= VOID_SHARE for samples in found.values())]
    void = len(base) - len(good)
    kept = good or range(len(base))
    lines = []
    for count, samples in sorted(found.items()):
        rates, costs = [samples[each].rate for each in kept], [samples[each].cost for each in kept]
        rate = statistics.interval(statistics.paired_ratios([base[each].rate for each in kept], rates))
        cost = statistics.interval(statistics.paired_ratios([base[each].cost for each in kept], costs))
        load = max(samples[each].load for each in kept)
        state = f"{void} of {len(base)} void" if good else "all void: shown all the same"
        lines.append(
            f"| {title} | {count} | {_median(rates):,.0f} | {rate.median:.2f} ({rate.low:.2f} to {rate.high:.2f}) "
            f"| {_median(costs) * 1e6:.1f} | {cost.median:.2f} ({cost.low:.2f} to {cost.high:.2f}) | {load:.2f} | {state} |"
        )
    return lines


def _median(values: Sequence[float]) -> float:
    return statistics.interval(values).median


def run(rounds: int, seconds: float, share: float, *, cap: bool, uncapped: bool) -> str:
    """Both groups; the table in Markdown."""
    lines = [
        "| load | processes | requests/s | ratio | CPU us a request | ratio | load's cores | rounds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    folder = Path(tempfile.mkdtemp(prefix="tidelog-bench-"))
    try:
        with ExitStack() as stack:
            sides = []
            for count in COUNTS:
                sides.append(Installation(folder / str(count), count))
                stack.callback(sides[-1].close)
            for number, row in enumerate(ROWS):
                for side in sides:
                    side.prepare(row, f"row-{number}")
                if cap:
                    nodes = [pid for side in sides for pid in side.pids[1 if side.count > 1 else 0 :]]
                    with capped(nodes, share):
                        print(f"{row.name}, each process at {share} of a core", file=sys.stderr)
                        lines += table(f"{row.name}, {share} of a core each", measured(sides, row, rounds, seconds))
                if uncapped:
                    print(f"{row.name}, without a cap", file=sys.stderr)
                    lines += table(f"{row.name}, no cap", measured(sides[:2], row, rounds, seconds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "\n".join(lines)


def write(lines: str) -> None:
    """Puts the table between the marks in docs/benchmarks.md, with date and commit."""
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    date = time.strftime("%Y-%m-%d", time.gmtime())
    head, mark, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end_mark, tail = rest.partition(END)
    if not mark or not end_mark:
        raise Failed(f"{PAGE} has no marks for the table")
    PAGE.write_text(f"{head}{BEGIN}\n\n{date}, commit {commit}:\n\n{lines}\n\n{END}{tail}", encoding="utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.processes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a sample")
    parser.add_argument("--capped", action="store_true", help="only with the cap")
    parser.add_argument("--uncapped", action="store_true", help="only without it")
    parser.add_argument("--share", type=float, default=SHARE, help="of a core, which each process may use")
    parser.add_argument("--write", action="store_true", help="the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    if not 1000 / PERIOD_US <= arguments.share <= 1:
        parser.error(f"--share has to be from {1000 / PERIOD_US} to 1")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with ended_by_signals():
            groups = {"cap": not arguments.uncapped, "uncapped": not arguments.capped}
            lines = run(arguments.rounds, arguments.seconds, arguments.share, **groups)
            print(lines, flush=True)
            if arguments.write:
                write(lines)
    except (Failed, NoCompiler) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
