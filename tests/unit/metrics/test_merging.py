from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tidelog.metrics.merging import merge

FIRST = b"""# HELP a_total Counts, of each.
# TYPE a_total counter
a_total{topic="x y",partition="0"} 1.0
a_total{topic="} "} 2.0
# HELP b B
# TYPE b gauge
b 3.5
"""
SECOND = b"""# HELP b B
# TYPE b gauge
b 4.0
# HELP s S
# TYPE s summary
s{quantile="0.5"} 7
s_count 9
s_sum 63.0
"""


def test_each_sample_has_its_node_and_each_family_stands_there_once() -> None:
    text = merge({1: FIRST, 2: SECOND, 3: None}).decode()
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found == {
        ("a_total", (("node", "1"), ("partition", "0"), ("topic", "x y"))): 1,
        ("a_total", (("node", "1"), ("topic", "} "))): 2,
        ("b", (("node", "1"),)): 3.5,
        ("b", (("node", "2"),)): 4,
        ("s", (("node", "2"), ("quantile", "0.5"))): 7,
        ("s_count", (("node", "2"),)): 9,
        ("s_sum", (("node", "2"),)): 63,
        ("tidelog_process_up", (("node", "1"),)): 1,
        ("tidelog_process_up", (("node", "2"),)): 1,
        ("tidelog_process_up", (("node", "3"),)): 0,
    }
    assert text.count("# TYPE b gauge") == text.count("# HELP b B") == 1


def test_a_page_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="without a family"):
        merge({1: b"what is this\n"})
