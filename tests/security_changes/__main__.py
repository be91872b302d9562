"""``python -m tests.security_changes [users] [acls] [locking] [tokens]``: users, ACLs, from plain text to a secured cluster, and
nodes that log in with tokens, each under load on three nodes; all by default, part of ``make security``. Exits with 1 when
anything is wrong."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.interop.java import JavaSide
from tests.security_changes.acls import CHANGES, AclChanges
from tests.security_changes.cluster import LOCKED, SecurableCluster
from tests.security_changes.locking import lock
from tests.security_changes.tokens import EXPIRED, TokenCluster, TokenLogins
from tests.security_changes.users import SETTINGS, UserChanges

Run = Callable[[Path, JavaSide, Callable[[str], None], int, int], list[str]]


def users(home: Path, java: JavaSide, say: Callable[[str], None], rounds: int, seed: int) -> list[str]:
    with SecurableCluster(home, LOCKED, more=SETTINGS) as cluster:
        return UserChanges(cluster, java, say, seed).run(rounds) + cluster.complaints()


def acls(home: Path, java: JavaSide, say: Callable[[str], None], rounds: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    changes = [name for _ in range(rounds) for name in rng.sample(list(CHANGES), len(CHANGES))]
    with SecurableCluster(home, LOCKED, combined=bool(seed % 2)) as cluster:
        return AclChanges(cluster, java, say, seed).run(changes) + cluster.complaints()


def locking(home: Path, java: JavaSide, say: Callable[[str], None], rounds: int, seed: int) -> list[str]:
    """Once, with controllers of their own for an even seed, and with voters in the files for every third one."""
    return lock(home, java, say, combined=bool(seed % 2), static=seed % 3 == 0)


def tokens(home: Path, java: JavaSide, say: Callable[[str], None], rounds: int, seed: int) -> list[str]:
    """Once, with controllers of their own for an even seed, and TLS between the nodes but for every third one."""
    cluster = TokenCluster(home, combined=bool(seed % 2), tls=seed % 3 != 0)
    with cluster.login.issuer, cluster:
        wrong = TokenLogins(cluster, say, seed).run()
        return wrong + [line for line in cluster.complaints() if EXPIRED not in line]


RUNS: dict[str, Run] = {"users": users, "acls": acls, "locking": locking, "tokens": tokens}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security_changes", description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"all by default: {', '.join(RUNS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    if unknown := sorted(set(args.runs) - set(RUNS)):
        parser.error(f"no such run: {', '.join(unknown)}. There are {', '.join(RUNS)}")
    bad = 0
    for name in args.runs or RUNS:
        for seed in args.seeds:
            began = time.monotonic()

            def say(what: str, began: float = began) -> None:
                print(f"  {time.monotonic() - began:5.0f} s  {what}", flush=True)

            print(f"{name}, seed {seed}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                java = JavaSide(Path(folder) / "java.log")
                try:
                    wrong = RUNS[name](Path(folder) / "nodes", java, say, args.rounds, seed)
                finally:
                    java.close()
            bad += bool(wrong)
            print("\n".join(wrong) if wrong else "  nothing is wrong", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
