"""Selects topics by a ``--topic`` flag, and asks before several of them are changed.

Apache Kafka's tools always read the flag as a regular expression: ``--delete --topic orders.eu`` deletes ``ordersXeu`` as well.
Here the exact name of a topic selects only that topic.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Sequence

import click

SHOWN = 20
"""Names listed in a question."""

yes_option = click.option(
    "--yes", "--force", "yes", is_flag=True, help="Do not ask before topics that a regular expression matches are changed."
)


def topic_pattern(text: str, existing: Collection[str]) -> re.Pattern[str]:
    """Matches the whole names of the selected topics. Parts between commas are alternatives, as in Kafka's tools; a part that
    is the name of one of the ``existing`` topics selects only that one. re.error for an invalid regular expression."""
    parts = [part.strip() for part in text.split(",")]
    return re.compile("|".join(re.escape(part) if part in existing else part for part in parts))


def meant(text: str, existing: Sequence[str]) -> Callable[[str], bool]:
    """Whether a topic is selected. re.error as above."""
    pattern = topic_pattern(text, frozenset(existing))
    return lambda name: pattern.fullmatch(name) is not None


def confirm(what: str, text: str, names: Sequence[str], *, yes: bool) -> None:
    """At a terminal, asks before changing topics that ``text`` matches but does not name; click.Abort when the answer is no.

    ``what``: the verb, such as ``Delete``. Scripts, whose stdin is not a terminal, are never asked.
    """
    typed = {part.strip() for part in text.split(",")}
    if yes or typed.issuperset(names) or not at_terminal():
        return
    print("".join(f"  {name}\n" for name in names[:SHOWN]), end="", file=sys.stderr)
    if len(names) > SHOWN:
        print(f"  and {len(names) - SHOWN} more", file=sys.stderr)
    noun = "this topic" if len(names) == 1 else f"these {len(names)} topics"
    click.confirm(f"{what} {noun}, which {text!r} matches?", abort=True, err=True)


def at_terminal() -> bool:
    """Whether stdin is a terminal, so that a question can be answered."""
    return sys.stdin.isatty()
