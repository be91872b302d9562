"""Topics that would not do what their settings promise."""

import pytest

from tidelog.config.topic_warnings import warnings


@pytest.mark.parametrize(
    ("factor", "settings", "says"),
    [
        (1, {"min.insync.replicas": "2"}, "brokers count with 1 instead"),
        (2, {"min.insync.replicas": "2"}, "while any one of them is away, nothing can be written with acks=all"),
        (3, {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}, "a replica that is behind may lead"),
        (
            1,
            {"cleanup.policy": "compact,delete", "min.compaction.lag.ms": "1000", "retention.ms": "500"},
            "deleted before they may be compacted",
        ),
    ],
)
def test_what_defeats_itself_is_told(factor: int, settings: dict[str, str], says: str) -> None:
    (text,) = warnings(factor, settings)
    assert says in text


@pytest.mark.parametrize(
    ("factor", "settings"),
    [
        (3, {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}),
        (1, {"min.insync.replicas": "1"}),
        (1, {}),
        (-1, {"min.insync.replicas": "2"}),
        (1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "1000", "retention.ms": "500"}),
        (1, {"cleanup.policy": "compact,delete", "min.compaction.lag.ms": "1000", "retention.ms": "-1"}),
    ],
)
def test_what_makes_sense_is_not(factor: int, settings: dict[str, str]) -> None:
    assert warnings(factor, settings) == []
