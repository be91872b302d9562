"""Does the time of a failed login tell which names exist? Logins of known and unknown names in random order, through sockets.

Each answer to a token is timed; the times of known and of unknown names are compared by the rank test of Mann and Whitney.
Twenty names of each kind, all of the same length; the node has ten times as many users. It must answer without its delay
(``connection.failed.authentication.delay.ms``).
"""

from __future__ import annotations

import base64
import gc
import math
import random
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from tests.attack.clients import ERROR_AT, answer, authenticate, connect, handshake
from tests.attack.nodes import USERS

KNOWN = random.Random(1).sample(list(USERS), 20)
UNKNOWN = [name.replace("user", "else") for name in KNOWN]
FAILED = (58).to_bytes(2)


class Compared(NamedTuple):
    """Medians in microseconds, and the probability of ranks at least this different if there is no difference."""

    step: str
    count: int
    known_us: float
    unknown_us: float
    p: float


def rank_test(one: Sequence[float], two: Sequence[float]) -> float:
    """The two-sided p of Mann and Whitney's U, by the normal approximation with its correction for ties; for large samples."""
    marked = sorted([(value, 0) for value in one] + [(value, 1) for value in two])
    total, ranks, ties, at = len(marked), 0.0, 0.0, 0
    while at < total:
        end = at
        while end < total and marked[end][0] == marked[at][0]:
            end += 1
        # All of them have the mean of their ranks, which count from 1.
        ranks += sum(1 for each in marked[at:end] if not each[1]) * (at + end + 1) / 2
        ties += (end - at) ** 3 - (end - at)
        at = end
    size = len(one) * len(two)
    deviation = math.sqrt(size / 12 * (total + 1 - ties / (total * (total - 1))))
    distance = ranks - len(one) * (len(one) + 1) / 2 - size / 2
    return math.erfc(abs(distance) / deviation / math.sqrt(2)) if deviation else 1.0


def plain_times(port: int, name: str) -> list[float]:
    """Seconds until the answer to the only message."""
    connection = connect(port)
    connection.sendall(handshake("PLAIN"))
    answer(connection)
    asked = authenticate(f"\0{name}\0a wrong password".encode())
    begun = time.perf_counter()
    connection.sendall(asked)
    told = answer(connection)
    took = time.perf_counter() - begun
    assert told[ERROR_AT : ERROR_AT + 2] == FAILED, told
    connection.close()
    return [took]


def scram_times(port: int, name: str, mechanism: str) -> list[float]:
    """Seconds until the answers to the first message and to the last."""
    connection = connect(port)
    connection.sendall(handshake(mechanism))
    answer(connection)
    asked = authenticate(b"n,,n=%b,r=abcdefgh" % name.encode())
    begun = time.perf_counter()
    connection.sendall(asked)
    told = answer(connection)
    first = time.perf_counter() - begun
    challenge = told[told.index(b"r=abcdefgh") :]
    nonce = challenge.split(b",")[0]
    proof = base64.b64encode(bytes(32 if mechanism.endswith("256") else 64))
    asked = authenticate(b"c=biws,%b,p=%b" % (nonce, proof))
    begun = time.perf_counter()
    connection.sendall(asked)
    told = answer(connection)
    last = time.perf_counter() - begun
    assert told[ERROR_AT : ERROR_AT + 2] == FAILED, told
    connection.close()
    return [first, last]


def compare(port: int, mechanism: str, count: int, seed: int) -> list[Compared]:
    """``count`` logins of known names and as many of unknown ones."""
    rng = random.Random(seed)
    order = [number % 2 for number in range(2 * count)]
    rng.shuffle(order)
    times: tuple[list[list[float]], list[list[float]]] = ([], [])
    gc.disable()
    for kind in order:
        name = rng.choice((KNOWN, UNKNOWN)[kind])
        times[kind].append(plain_times(port, name) if mechanism == "PLAIN" else scram_times(port, name, mechanism))
    gc.enable()
    steps = ["the only message"] if mechanism == "PLAIN" else ["first message", "last message"]
    return [
        Compared(
            f"{mechanism}, {step}",
            count,
            *(statistics.median(each[number] for each in kind) * 1e6 for kind in times),
            rank_test(*([each[number] for each in kind] for kind in times)),
        )
        for number, step in enumerate(steps)
    ]
