import asyncio

from tidelog.server.deadline import NEVER_MS, Deadline
from tidelog.server.runtime import LoopRuntime


class Runtime(LoopRuntime):
    """Time stands still; what was asked of the loop is counted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.ms = 0

    def real_ms(self) -> int:
        return self.ms


async def run(rings: list[int]) -> None:
    runtime = Runtime(asyncio.get_running_loop())
    rung = asyncio.Event()

    def ring() -> None:
        rings.append(runtime.ms)
        rung.set()

    deadline = Deadline(runtime, ring)
    deadline.after(3_600_000)
    far = deadline._alarm
    deadline.after(7_200_000)
    deadline.after(NEVER_MS)
    assert deadline._alarm is far is not None, "a later deadline leaves the alarm as it is"
    deadline.after(1)
    assert far.cancelled()
    await rung.wait()
    assert deadline._alarm is None
    deadline.after(3_600_000)
    deadline.cancel()
    deadline.cancel()
    assert deadline._alarm is None
    await runtime.close()


def test_only_an_earlier_deadline_sets_the_alarm_anew_and_it_rings_once() -> None:
    rings: list[int] = []
    asyncio.run(run(rings))
    assert rings == [0]
