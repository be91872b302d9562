"""Options of replication."""

from __future__ import annotations

import pytest

from tidelog.config.broker_replication import OPTIONS
from tidelog.model.errors import ConfigError

BY_NAME = {option.name: option for option in OPTIONS}


def test_what_does_not_act_says_so() -> None:
    assert {name for name, option in BY_NAME.items() if option.inert} == {
        "num.replica.alter.log.dirs.threads",
        "replica.socket.receive.buffer.bytes",
    }


@pytest.mark.parametrize("name", ["num.replica.fetchers", "replication.quota.window.num"])
def test_a_count_is_at_least_one(name: str) -> None:
    assert BY_NAME[name].parse("1") == 1
    with pytest.raises(ConfigError, match=name):
        BY_NAME[name].parse("0")
