"""``make attack``: what strangers can do to a node, in full numbers. Prints each part's figures; nothing is judged by time.

    python -m tests.attack [PART...] [--seed N] [--count N]

Parts: mutations (a million handshakes and exchanges), flood (half-open connections and wrong passwords beside a bystander),
timing (known and unknown names, 100,000 logins each). ``--count`` replaces the number of exchanges or logins.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.attack import tls_exchanges
from tests.attack.nodes import AUTHORITY, Secured, secured_node
from tests.attack.timing import compare
from tests.interop.nodes import ROOT, environment
from tests.property import test_sasl_mutations
from tidelog.security.scram import ScramMechanism

PIECES = 100
HALF_OPEN = 5000
PASSWORDS_A_SECOND = 1000
FLOOD_S = 30


def mutations(seed: int, count: int) -> None:
    """Half of ``count`` as TLS handshakes, half as SASL exchanges, in pieces with seeds of their own."""
    for name, attack in (("TLS handshakes", tls_exchanges.attack), ("SASL exchanges", sasl)):
        ended: Counter[str] = Counter()
        begun = time.monotonic()
        with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
            for piece in pool.map(attack, range(seed * PIECES, (seed + 1) * PIECES), [count // 2 // PIECES] * PIECES):
                ended += piece
        print(f"{sum(ended.values()):,} mutated {name} in {time.monotonic() - begun:.0f} s: {dict(ended)}", flush=True)


def sasl(seed: int, count: int) -> Counter[str]:
    refused = test_sasl_mutations.attack(seed, count)
    return Counter({"answered or closed in order": refused, "unreadable": count - refused})


def beside(secured: Secured, seconds: float, *others: tuple[str, ...]) -> None:
    """Runs ``others`` and a bystander, and prints what each of them saw."""

    def started(*arguments: str) -> subprocess.Popen[str]:
        env = environment()
        env["PYTHONPATH"] = f"{ROOT}{os.pathsep}{env['PYTHONPATH']}"
        command = [sys.executable, "-m", "tests.attack.flood", *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)

    before, most = secured.memory_mib, 0.0
    running = [started("bystander", str(secured.sasl), str(seconds)), *(started(*each) for each in others)]
    while any(each.poll() is None for each in running):
        most = max(most, secured.memory_mib)
        time.sleep(0.1)
    for name, each in zip(["bystander", *(other[0] for other in others)], running, strict=True):
        assert not each.returncode, f"{name} ended with {each.returncode}"
        print(f"  {name}: {json.loads(each.communicate()[0])}")
    print(
        f"  memory of the node: {before:.0f} MiB before, {most:.0f} at most; {secured.descriptors} descriptors after", flush=True
    )


def flood(seed: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder, secured_node(Path(folder) / "node") as secured:
        authority = Path(folder) / "authority.pem"
        authority.write_text(AUTHORITY.pem)
        seconds = str(FLOOD_S)
        new = ("logins", str(secured.sasl_tls), seconds, str(authority))
        print("alone", flush=True)
        beside(secured, FLOOD_S / 3, ("logins", str(secured.sasl_tls), str(FLOOD_S / 3), str(authority)))
        print(f"{HALF_OPEN} half-open TLS connections", flush=True)
        beside(secured, FLOOD_S, new, ("half-open", str(secured.sasl_tls), seconds, str(HALF_OPEN)))
        print(f"{PASSWORDS_A_SECOND} wrong passwords a second", flush=True)
        beside(secured, FLOOD_S, new, ("passwords", str(secured.sasl), seconds, str(PASSWORDS_A_SECOND)))


def timing(seed: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "node"
        with secured_node(directory, connection_failed_authentication_delay_ms="0") as secured:
            for mechanism in ScramMechanism:
                secured.add_scram(mechanism)
            for name in ("PLAIN", *(each.title for each in ScramMechanism)):
                for found in compare(secured.sasl, name, count, seed):
                    print(
                        f"{found.step}: {found.count:,} each, median {found.known_us:.2f} us known and "
                        f"{found.unknown_us:.2f} us unknown, p = {found.p:.3f}",
                        flush=True,
                    )


PARTS: dict[str, tuple[Callable[[int, int], None], int]] = {
    "mutations": (mutations, 1_000_000),
    "flood": (flood, 0),
    "timing": (timing, 100_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description="attacks on a secured node")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int)
    options = parser.parse_args()
    for name in options.parts or PARTS:
        part, usual = PARTS[name]
        part(options.seed, usual if options.count is None else options.count)


if __name__ == "__main__":
    main()
