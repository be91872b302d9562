from __future__ import annotations

from tidelog.replication.topic_stats import TopicStats


def test_stats_start_at_zero_and_add_up() -> None:
    one, two = TopicStats(), TopicStats()
    one.bytes_in, two.bytes_in = 3, 4
    two.failed_fetch_requests = 1
    one.add(two)
    assert (one.bytes_in, one.failed_fetch_requests, one.messages_in) == (7, 1, 0)
    assert two.bytes_in == 4
