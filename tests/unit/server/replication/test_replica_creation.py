import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tidelog.server.replication.replica_creation import Creating
from tidelog.server.runtime import LoopRuntime


class Replicas:
    """So many steps are left; each makes one partition, named by a number."""

    def __init__(self, steps: int) -> None:
        self.postponed = steps
        self.on_postponed: Callable[[], None] | None = None

    def create_step(self, now_ms: int) -> list[Any]:
        self.postponed -= 1
        return [SimpleNamespace(number=self.postponed)]


async def play(stop_after: int) -> tuple[list[str], Replicas]:
    runtime = LoopRuntime(asyncio.get_running_loop())
    replicas, seen = Replicas(3), list[str]()

    def made(partitions: Sequence[Any]) -> None:
        seen.append(f"made {partitions[0].number}")
        runtime.loop.call_soon(seen.append, "somebody else")
        if len([each for each in seen if each.startswith("made")]) == stop_after:
            creating.stop()

    creating = Creating(replicas, runtime, made)  # type: ignore[arg-type]
    assert replicas.on_postponed is not None
    replicas.on_postponed()
    replicas.on_postponed()
    for _ in range(10):
        await asyncio.sleep(0)
    await runtime.close()
    return seen, replicas


def test_others_have_their_turns_between_two_steps_until_all_is_made() -> None:
    seen, replicas = asyncio.run(play(stop_after=9))
    assert [each for each in seen if each != "somebody else"] == ["made 2", "made 1", "made 0"]
    assert seen.index("somebody else") < seen.index("made 0")
    assert replicas.postponed == 0


def test_a_node_that_stops_makes_no_more() -> None:
    seen, replicas = asyncio.run(play(stop_after=1))
    assert (replicas.postponed, replicas.on_postponed) == (2, None)
    assert "made 1" not in seen
