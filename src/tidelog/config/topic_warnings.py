"""Settings of a new topic that defeat themselves: allowed, and hardly ever meant."""

from __future__ import annotations

from collections.abc import Mapping


def warnings(replication_factor: int, settings: Mapping[str, str | None]) -> list[str]:
    """A sentence for each; ``settings`` are those in effect, as CreateTopics answers them."""
    min_isr = _number(settings.get("min.insync.replicas"))
    found = []
    if min_isr is not None and min_isr > replication_factor > 0:
        found.append(
            f"min.insync.replicas is {min_isr}, and a partition has {replication_factor} replica(s): brokers count with "
            f"{replication_factor} instead, so acks=all promises no more than that. Create it with {min_isr + 1} replicas."
        )
    elif min_isr is not None and min_isr == replication_factor > 1:
        found.append(
            f"min.insync.replicas is {min_isr}, as many as a partition has replicas: while any one of them is away, nothing can "
            f"be written with acks=all. Create it with {min_isr + 1} replicas, or with "
            f"min.insync.replicas={min_isr - 1}."
        )
    if settings.get("unclean.leader.election.enable") == "true" and min_isr is not None and min_isr > 1:
        found.append(
            "unclean.leader.election.enable is true: a replica that is behind may lead, and what min.insync.replicas "
            "protects is lost."
        )
    least, most = (_number(settings.get(name)) for name in ("min.compaction.lag.ms", "retention.ms"))
    policy = settings.get("cleanup.policy") or ""
    if "compact" in policy and "delete" in policy and least is not None and most is not None and 0 <= most < least:
        found.append(
            f"min.compaction.lag.ms is {least} and retention.ms {most}: records are deleted before they may be compacted."
        )
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None
