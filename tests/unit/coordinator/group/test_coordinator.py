"""Refusals, restarts and deletions, as a dialogue with the coordinator."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.driver import Driver, stable_group
from tidelog.model.errors import ErrorCode as E


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session": 5_999}, E.INVALID_SESSION_TIMEOUT),
        ({"session": 1_800_001}, E.INVALID_SESSION_TIMEOUT),
        ({"kind": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, E.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(options: dict[str, object], error: E) -> None:
    driver = Driver()
    assert driver.answers[driver.join("g", **options)].error_code == error  # type: ignore[arg-type]
    assert "g" not in driver.machine.groups


def test_a_group_without_a_name_is_refused() -> None:
    driver = Driver()
    assert driver.answers[driver.join("")].error_code == E.INVALID_GROUP_ID


def test_a_restart_keeps_members_and_gives_them_a_whole_session() -> None:
    driver = Driver()
    ids = stable_group(driver)
    driver.restart()
    driver.advance(9_000)
    assert driver.answers[driver.sync("g", ids[1], 1)].assignment == ids[1].encode()
    assert driver.heartbeat("g", ids[0], 1) == 0
    driver.advance(9_000)
    assert driver.heartbeat("g", ids[0], 1) == 0
    driver.advance(2_000)
    assert list(driver.machine.groups["g"].members) == [ids[0]]


def test_only_a_group_without_members_is_deleted() -> None:
    driver = Driver()
    ids = stable_group(driver)
    driver.commit("g", {("t", 0): 1}, ids[0], 1)
    for expected in (E.NON_EMPTY_GROUP, E.NONE, E.GROUP_ID_NOT_FOUND):
        token = driver.token()
        driver.run(driver.machine.offsets.delete_group(token, "g", lambda error: error))
        assert driver.answers[token] == expected
        if expected is E.NON_EMPTY_GROUP:
            driver.leave("g", *[(member, None) for member in ids])
    assert len(driver.machine.offsets.stored) == 0
