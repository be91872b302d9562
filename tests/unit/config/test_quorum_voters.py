"""``controller.quorum.voters``."""

import pytest

from tidelog.config.quorum_voters import Voter, parse_voters
from tidelog.model.errors import ConfigError


def test_voters_are_id_host_and_port_each_id_once() -> None:
    assert parse_voters("v", ["1@localhost:9093", "2@[::1]:9094"]) == (Voter(1, "localhost", 9093), Voter(2, "::1", 9094))
    for items in (["localhost:9093"], ["1@:9093"], ["x@h:1"], ["1@h:99999"]):
        with pytest.raises(ConfigError, match="id@host:port"):
            parse_voters("v", items)
    with pytest.raises(ConfigError, match="twice"):
        parse_voters("v", ["1@a:1", "1@b:2"])
