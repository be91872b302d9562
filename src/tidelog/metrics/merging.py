"""The pages of several processes as one: every sample gets the label ``node``, and each family stands there once.

Works on Prometheus's text, version 0.0.4, as ``metrics.exposition`` writes it: a sample belongs to the last family that was named
above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

UP: Final = b"tidelog_process_up"
_UP_DOC: Final = b"# HELP %b Whether the node's process has answered with its metrics.\n# TYPE %b gauge\n" % (UP, UP)


class _Family(NamedTuple):
    """``comments`` by their kind, HELP or TYPE."""

    comments: dict[bytes, bytes]
    samples: list[bytes]


def merge(pages: Mapping[int, bytes | None]) -> bytes:
    """One page of these, by node id; None for a process that has not answered, which is then down in ``tidelog_process_up``.
    ValueError for a page that is none."""
    families: dict[bytes, _Family] = {}
    for node_id, page in pages.items():
        _add(families, b'node="%d"' % node_id, page or b"")
    up = [b'%b{node="%d"} %d\n' % (UP, node_id, page is not None) for node_id, page in pages.items()]
    lines = [line + b"\n" for each in families.values() for line in (*each.comments.values(), *each.samples)]
    return b"".join((*lines, _UP_DOC, *up))


def _add(families: dict[bytes, _Family], label: bytes, page: bytes) -> None:
    family: _Family | None = None
    for line in page.split(b"\n"):
        if line.startswith(b"# "):
            kind, name = line.split(b" ", 3)[1:3]
            family = families.setdefault(name, _Family({}, []))
            family.comments.setdefault(kind, line)
        elif line:
            if family is None:
                raise ValueError("a sample without a family")
            family.samples.append(_labelled(line, label))


def _labelled(sample: bytes, label: bytes) -> bytes:
    brace, space = sample.find(b"{"), sample.find(b" ")
    if 0 <= brace < space:
        return b"%b{%b,%b" % (sample[:brace], label, sample[brace + 1 :])
    return b"%b{%b}%b" % (sample[:space], label, sample[space:])
