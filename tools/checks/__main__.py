"""Runs the checks; exit status 1 when one has findings."""

from __future__ import annotations

import argparse
import gc
import sys

from tools.checks import cycles, decisions, front, public_imports, secret_values, sentences, sizes, words

CHECKS = {
    "cycles": cycles,
    "words": words,
    "sentences": sentences,
    "imports": public_imports,
    "sizes": sizes,
    "decisions": decisions,
    "front": front,
    "secrets": secret_values,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.checks", description="checks that look at the whole tree")
    parser.add_argument("name", nargs="?", choices=sorted(CHECKS), help="one check; without it, all")
    parser.add_argument("--write", action="store_true", help="rewrite what the check knows to be wrong; it may only shrink")
    parser.add_argument("--list", metavar="PREFIX", help="words: every place below this path")
    options = parser.parse_args(arguments)
    if options.list is not None:
        print("\n".join(words.places(options.list)))
        return 0
    # Half of the time goes to collections that find nothing: syntax trees are kept, and have no cycles.
    gc.disable()
    failed = False
    for name in [options.name] if options.name else CHECKS:
        check = CHECKS[name]
        if options.write:
            print(f"{name}: {check.write()}")
            continue
        report = check.check()
        failed = failed or bool(report.findings)
        for line in report.findings + report.notes:
            print(f"{name}: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
