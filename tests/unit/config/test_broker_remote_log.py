"""Options of tiered storage."""

from __future__ import annotations

from tidelog.config.broker_remote_log import OPTIONS


def test_of_tiered_storage_nothing_acts_and_turning_it_on_is_refused() -> None:
    remote = {option.name: option for option in OPTIONS if option.name.startswith("remote.")}
    assert len(remote) == 29
    assert [name for name, option in remote.items() if option.refuses] == ["remote.log.storage.system.enable"]
    assert all(option.inert or option.refuses for option in remote.values())
