"""What keeps a streams group from having tasks, from its topology and the topics that there are."""

from __future__ import annotations

import difflib
from typing import Final

from tidelog.console.group_facts import GroupFacts
from tidelog.console.quoting import word
from tidelog.console.verdict import Finding
from tidelog.console.wording import SHOWN

NOT_READY: Final = "NotReady"


def not_ready(facts: GroupFacts) -> Finding | None:
    """T1: the group has no tasks, or a member has another topology."""
    last, first = facts.last, facts.first
    if last.streams is None or first.streams is None:
        return None
    streams = last.streams
    stands = last.state == first.state == NOT_READY
    stale = streams.stale if first.streams.stale else ()
    if not stands and not stale:
        return None
    missing = sorted(streams.sources & last.missing_topics)
    internal = sorted(streams.internal & last.missing_topics)
    texts = []
    for name in missing:
        near = difflib.get_close_matches(name, last.topics, 1)
        texts.append(f"source topic {name} does not exist" + (f"; there is {near[0]}" if near else ""))
    if not missing:
        for subtopology, sources in streams.subtopologies:
            counts = {name: last.counts[name] for name in sources if name in last.counts}
            if len(set(counts.values())) > 1:
                each = ", ".join(f"{name} has {number}" for name, number in sorted(counts.items()))
                texts.append(f"subtopology {subtopology} reads topics with unequal partitions: {each}")
    texts += [f"internal topic {name} does not exist" for name in internal]
    texts += stale
    state = f"state {first.state}, and {last.state} {facts.seconds:.0f} s later, topology epoch {streams.topology_epoch}"
    command = f"tidelog topics --create --topic {word(missing[0])}" if missing else "tidelog topics --describe"
    return Finding(
        "T1",
        "the streams group has no tasks yet" if stands else "members run another topology than the group's",
        (state, *texts[:SHOWN], *((f"and {len(texts) - SHOWN} more",) if len(texts) > SHOWN else ())),
        "Topics that are joined need the same number of partitions, and source topics have to be there before the application "
        "starts. Brokers make internal topics themselves; where they cannot, the application's log has the reason. Members with "
        "an older topology get tasks again when they are started in the group's version.",
        command,
    )
