"""Past the brokers to the active controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.running_node import running_node
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.controller_session import ControllerSession, session
from tidelog.cli.refusal import CannotConnect, CommandFailed


def test_brokers_are_not_controllers_and_the_flag_is_named(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        with session(address, False, None) as connected:
            assert isinstance(connected, AdminSession)
        with pytest.raises(CommandFailed, match="is a listener of a broker: give it as --bootstrap-server"):
            session(address, True, None)


def test_where_no_controller_answers_the_address_is_named() -> None:
    with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1 \(Connection refused\)"):
        ControllerSession("127.0.0.1:1")
