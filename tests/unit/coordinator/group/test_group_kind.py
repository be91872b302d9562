"""A made-up protocol of groups: what a new kind has to bring, and that nothing else has to know of it."""

from typing import Any

from tests.unit.coordinator.group.driver import Driver
from tidelog.coordinator.group.classic.classic_kind import ClassicKind
from tidelog.coordinator.group.consumer.consumer_kind import ConsumerKind
from tidelog.coordinator.group.describing import list_groups
from tidelog.coordinator.group.group_kind import GroupKind
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.offset_delete import OffsetDeleteRequest

QUESTIONS = [name for name in vars(GroupKind) if not name.startswith("_")]


class Choir:
    """Its members sing."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members = {"alto": object()}

    def check(self) -> None:
        pass


class ChoirKind(ClassicKind):
    """Sings instead of reading."""

    name = "choir"

    def protocol_type(self, group: Any) -> str:
        return "song"

    def state_name(self, group: Any) -> str:
        return "Singing"

    def join(self, group: Any, join: Any, effects: Any, now_ms: int, former: Any = ()) -> None:
        effects.reply(join.token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def commit_error(self, group: Any, request: Any, version: int, now_ms: int) -> ErrorCode | None:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def delete_offsets_error(self, group: Any) -> ErrorCode | None:
        return ErrorCode.NON_EMPTY_GROUP

    def next_deadline(self, group: Any) -> int | None:
        return None


def test_each_kind_answers_all_questions() -> None:
    assert len(QUESTIONS) > 15
    for kind in (ClassicKind, ConsumerKind):
        assert [question for question in QUESTIONS if not hasattr(kind, question)] == []


def test_another_protocol_is_one_more_row() -> None:
    driver = Driver()
    driver.machine._kinds._by_class[Choir] = ChoirKind(driver.machine._c)
    driver.machine._c.put(Choir("c"))
    assert driver.answers[driver.join("c")] is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.commit("c", {("t", 0): 1}) == [ErrorCode.GROUP_ID_NOT_FOUND]
    token = driver.token()
    driver.run(driver.machine.offsets.delete_offsets(token, OffsetDeleteRequest(group_id="c")))
    assert driver.answers[token].error_code == ErrorCode.NON_EMPTY_GROUP
    listed = list_groups(driver.machine, ["singing"], ["choir"])
    assert [(each.group_id, each.protocol_type, each.group_type) for each in listed] == [("c", "song", "choir")]
