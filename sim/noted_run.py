"""Many seeds of a simulation, from the command line: what is done is noted in a file, and a run that was stopped goes on there.

A broken promise prints the seed that replays it (``--seed N``) and ends with status 1; so does a fault or a rare branch that a
long run has never reached.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

CHUNK = 20
LONG = 100
"""Seeds of a run that has to have reached all that is expected."""


class Run(Protocol):
    """What a seed became."""

    @property
    def counts(self) -> Counter[str]:
        """How often what happened."""
        ...


def run_all(run_seed: Callable[[int], Run], first: int, count: int, note: Path | None) -> tuple[int, Counter[str]]:
    """All seeds from ``first`` on, or those that the note says are left; how many in all, and what happened."""
    done, counts = 0, Counter[str]()
    if note is not None:
        note.parent.mkdir(parents=True, exist_ok=True)
        if note.exists():
            done, noted = json.loads(note.read_text())
            counts = Counter(noted)
    for seed in range(first + done, first + count):
        counts += run_seed(seed).counts
        done += 1
        if note is not None and (done % CHUNK == 0 or done == count):
            note.write_text(json.dumps([done, counts]))
    return done, counts


def main(
    what: str,
    run_seed: Callable[[int], Run],
    seed_that_finds: Callable[[str, int], int | None],
    bugs: Iterable[str],
    violation: type[AssertionError],
    expected: Sequence[str],
    *,
    length: str = "",
) -> int:
    """The exit status. ``what`` is simulated; a broken promise raises ``violation``; ``length`` says how long a seed is."""
    parser = argparse.ArgumentParser(description=f"The simulated {what}, for many seeds.")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--note", type=Path, help="the file that a stopped run goes on from")
    parser.add_argument("--bugs", type=int, metavar="LIMIT", help="plant each bug, and look for it in so many seeds")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.bugs is not None:
        found = {bug: seed_that_finds(bug, options.bugs) for bug in bugs}
        sys.stdout.writelines(f"{bug}: {'NOT FOUND' if seed is None else f'seed {seed}'}\n" for bug, seed in found.items())
        return int(None in found.values())
    try:
        if options.seed is not None:
            sys.stdout.write(f"{dict(run_seed(options.seed).counts)}\n")
            return 0
        done, counts = run_all(run_seed, options.first, options.seeds, options.note)
    except violation as broken:
        sys.stdout.write(f"{broken}\n")
        return 1
    sys.stdout.write(f"{done} seeds{length}; no promise was broken\n")
    sys.stdout.writelines(f"  {name}: {counts[name]}\n" for name in expected)
    missing = [name for name in expected if not counts[name]]
    sys.stdout.write(f"never reached: {', '.join(missing)}\n" if missing else "")
    return int(bool(missing) and done >= LONG)
