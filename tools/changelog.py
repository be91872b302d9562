"""CHANGELOG.md from the fragments in ``changelog.d``: ``python tools/changelog.py`` writes it, ``--check`` compares.

A fragment is ``<slug>.<kind>.md`` and holds one fact for users. Before the first release a fix is no news, because no user has
met the fault: such fragments are left out until CHANGELOG.md has a released version. ``--release VERSION`` turns the list into
that version's and deletes the fragments.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed", "security": "Security"}
HEAD = "# Changelog\n\nWhat users notice. Written by `make changelog` from `changelog.d/`.\n"
UNRELEASED = "## Not released yet"
VERSION = re.compile(r"^## \d", re.MULTILINE)


class WrongFragment(Exception):
    """A fragment that cannot be news; the text names it and says why."""


def fragments(folder: Path, *, released: bool) -> dict[str, list[str]]:
    """The facts of each kind, in the order of their file names. Raises WrongFragment."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.md")):
        kind = path.stem.rpartition(".")[2]
        if kind not in KINDS:
            raise WrongFragment(f"{path.name}: its name ends in none of {', '.join(f'.{each}.md' for each in KINDS)}")
        text = " ".join(path.read_text(encoding="utf-8").split())
        if not text:
            raise WrongFragment(f"{path.name} is empty")
        if kind != "fixed" or released:
            found.setdefault(kind, []).append(text)
    return found


def section(title: str, facts: dict[str, list[str]]) -> str:
    """The list below one heading."""
    parts = [f"### {KINDS[kind]}\n\n" + "".join(f"- {fact}\n" for fact in facts[kind]) for kind in KINDS if kind in facts]
    return f"{title}\n\n" + "\n".join(parts)


def page(folder: Path, old: str, title: str = UNRELEASED) -> str:
    """The whole page: the fragments above the released versions of the old page."""
    first = VERSION.search(old)
    versions = old[first.start() :] if first else ""
    facts = fragments(folder, released=bool(first))
    news = section(title, facts) if facts else ""
    return "\n".join(part for part in (HEAD, news, versions) if part)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="CHANGELOG.md from changelog.d")
    parser.add_argument("--check", action="store_true", help="exit status 1 when CHANGELOG.md is not what the fragments give")
    parser.add_argument("--release", metavar="VERSION", help="make it the list of this version, and delete the fragments")
    options = parser.parse_args(arguments)
    target, folder = root / "CHANGELOG.md", root / "changelog.d"
    old = target.read_text(encoding="utf-8")
    title = f"## {options.release} ({datetime.datetime.now(datetime.UTC):%Y-%m-%d})" if options.release else UNRELEASED
    try:
        new = page(folder, old, title)
    except WrongFragment as wrong:
        print(f"changelog: {wrong}", file=sys.stderr)
        return 1
    if options.check:
        if new != old:
            print("changelog: CHANGELOG.md is not what changelog.d gives: make changelog", file=sys.stderr)
        return int(new != old)
    target.write_text(new, encoding="utf-8")
    for path in folder.glob("*.md") if options.release else ():
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
