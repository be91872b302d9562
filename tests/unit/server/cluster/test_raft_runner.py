from __future__ import annotations

from typing import Any

import pytest

from tests.unit.server.controllers import Controllers, setting
from tidelog.controller.committed_image import CommittedImage
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.server.cluster import raft_runner


def test_a_disk_that_fails_ends_the_node_and_refuses_who_waits(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("1")
        node = one.nodes[1]
        waiting = node.runner.controller.submit(setting("2"), None)
        node.runner.member.log.log.fail("a test", OSError(5, "broken"))
        with pytest.raises(KafkaError) as refused:
            await waiting
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert node.failed.is_set()
        with pytest.raises(KafkaError):
            await node.runner.controller.submit(setting("3"), None)
        assert isinstance(node.runner.member.log.log.failure, StorageFailure)

    one.run(main)


def test_an_effect_that_cannot_be_done_for_whatever_reason_ends_the_node(
    one: Controllers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Machine and log are apart then: a node that went on would be deaf, and alive for everybody else."""

    async def main() -> None:
        await one.start()
        await one.set("1")
        node = one.nodes[1]
        monkeypatch.setattr(node.runner, "_one", lambda effect: {}[effect])
        waiting = node.runner.controller.submit(setting("2"), None)
        with pytest.raises(KafkaError) as refused:
            await waiting
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert node.failed.is_set()

    one.run(main)
    assert "what the metadata quorum decided was not done" in caplog.text


def test_a_long_metadata_log_is_read_in_turns_before_the_controller_is_active(
    one: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        await one.start()
        for value in range(20):
            await one.set(str(value))
        await one.stop()
        monkeypatch.setattr(raft_runner, "TURN_BYTES", 1)
        turns: list[int] = []
        advance = CommittedImage.advance

        def counted(committed: CommittedImage, *args: Any, **named: Any) -> bool:
            turns.append(committed.next_offset)
            return advance(committed, *args, **named)

        monkeypatch.setattr(CommittedImage, "advance", counted)
        await one.start()
        assert await one.set("last") == "last"
        await one.until(lambda: one.value(1) == "last")
        assert len(set(turns)) >= 20

    one.run(main)
