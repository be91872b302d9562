"""One sample: a fixed amount of work, and what it cost the processes that did it."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.pair import frames, machine
from bench.pair.frames import Frame
from bench.pair.machine import Usage
from bench.pair.processes import run
from bench.pair.programs import program
from bench.pair.servers import Server
from bench.pair.voids import Noise

LOAD_S = 900.0
TAIL_GAP_US = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """``cost``: in the row's unit, what ratios are made of. CPU seconds and switches are those of the measured processes;
    ``generator``: the cores that the generator used; ``noise``: None where it was not looked at (instructions); ``slices``: the
    costs of its parts, where the sides took turns within the sample."""

    cost: float
    amount: int
    user: float = 0.0
    system: float = 0.0
    switches: int = 0
    seconds: float = 0.0
    generator: float = 0.0
    noise: Noise | None = None
    slices: tuple[float, ...] = ()

    @property
    def user_share(self) -> float:
        """Of the CPU; ticks are coarse, and in a short sample a difference of two of them may be below zero."""
        return min(1.0, max(0.0, self.user / ((self.user + self.system) or 1)))

    def to_json(self) -> dict[str, object]:
        """As it stands in the file of results."""
        return asdict(self)


def together(slices: Sequence[Sample]) -> Sample:
    """One sample of several slices: their median cost, their sums, and the mean of their noise by time."""
    seconds = sum(each.seconds for each in slices)

    def mean(of: Callable[[Sample], float]) -> float:
        return sum(of(each) * each.seconds for each in slices) / seconds if seconds else 0.0

    return Sample(
        cost=statistics.median(each.cost for each in slices),
        amount=sum(each.amount for each in slices),
        user=sum(each.user for each in slices),
        system=sum(each.system for each in slices),
        switches=sum(each.switches for each in slices),
        seconds=seconds,
        generator=mean(lambda each: each.generator),
        noise=Noise(
            mean(lambda each: each.noise.others if each.noise else 0.0),
            mean(lambda each: each.noise.steal if each.noise else 0.0),
        ),
        slices=tuple(each.cost for each in slices),
    )


@dataclass(frozen=True)
class LoadResult:
    """What the generator says: its requests or records, its own CPU seconds, ``moved`` bytes in both directions, and latencies in
    milliseconds by name where it takes them."""

    requests: int
    seconds: float
    user: float
    system: float
    moved: int = 0
    latencies: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Requests or records a second."""
        return self.requests / self.seconds

    @property
    def mb_per_s(self) -> float:
        """MB (10^6 bytes) a second, both directions."""
        return self.moved / self.seconds / 1e6

    def to_json(self) -> dict[str, object]:
        """As it stands in a file of results."""
        return {"rate": self.rate, "mb_per_s": self.mb_per_s, "moved": self.moved, "latencies": self.latencies}


def parse_load(text: str) -> LoadResult:
    """The line of JSON that ``load`` prints."""
    found = json.loads(text)
    moved = found["sent"] + found["received"]
    return LoadResult(int(found["requests"]), found["seconds"], found["user_s"], found["system_s"], moved)


def generate(port: int, wanted: Sequence[Frame], connections: int, in_flight: int, requests: int) -> LoadResult:
    """Run ``load``; ``connections`` 0 is its tail mode, with ``in_flight`` as the gap in microseconds. Raises Failed."""
    with tempfile.NamedTemporaryFile(prefix="tidelog-pair-frames-") as file:
        frames.write_frames(Path(file.name), wanted)
        mode = "tail" if connections == 0 else str(connections)
        command = [str(program("load")), file.name, mode, str(in_flight), str(requests), str(port)]
        return parse_load(run(command, os.environ, Path.cwd(), LOAD_S))


def timed(own: Callable[[], Usage], work: Callable[[], LoadResult | None], measured: Callable[[], Usage]) -> Sample:
    """Do the work; ``measured`` gives what the processes under measurement have used, ``own`` what all processes of ours have
    (the harness and ended children are added here). ``cost`` is the CPU in microseconds for all of the work."""
    cores = os.cpu_count() or 1
    before, mine, used = machine.machine(), own(), measured()
    times, began = os.times(), time.monotonic()
    result = work()
    seconds = time.monotonic() - began
    used, mine, ended = measured() - used, own() - mine, os.times()
    after = machine.machine()
    harness = sum(ended[:4]) - sum(times[:4])
    total = mine.user + mine.system + harness
    return Sample(
        cost=(used.user + used.system) * 1e6,
        amount=1 if result is None else result.requests,
        user=used.user,
        system=used.system,
        switches=used.switches,
        seconds=seconds,
        generator=0.0 if result is None else (result.user + result.system) / result.seconds,
        noise=Noise(machine.others_share(before, after, total, cores), machine.steal_share(before, after, cores)),
    )


def server_usage(servers: Sequence[Server]) -> Usage:
    """What these servers' processes have used so far."""
    return machine.usage_of(pid for server in servers for pid in server.pids)
