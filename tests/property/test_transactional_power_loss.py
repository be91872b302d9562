"""Power loss in the middle of transactions: producer state, transaction indexes and the last stable offset say what the log says,
and a reader of committed records sees what was committed, from wherever it begins.

``TIDELOG_POWER_LOSS_SEEDS`` makes the run longer (default 3 per kind).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from sim.transactions import Producers, committed, read_committed
from tests.property.test_power_loss import SEEDS, Image, Workload, batches_of, check_producers, check_start
from tidelog.records.batch import read_header
from tidelog.storage.log_config import Origin
from tidelog.storage.unified_log import UnifiedLog


@dataclass
class Transactions(Workload):
    """A power loss with transactions for most writes."""

    def __post_init__(self) -> None:
        self.producers = Producers(random.Random(self.seed))
        super().__post_init__()

    def append_idempotent(self, *, transactional: bool = False) -> None:
        self.put(self.producers.data(self.records()))

    def transaction(self) -> None:
        self.put(self.producers.marker(self.now_ms), Origin.COORDINATOR)

    def resume_producers(self) -> None:
        self.producers.resume(self.log)


def check_view(image: Image, log: UnifiedLog) -> None:
    """Readers of committed records, from several places, by small answers and by large ones."""
    found = batches_of(log)
    whole = next(h for h in image.histories if any(h[s : s + len(found)] == found for s in range(len(h) + 1)))
    history = [batch for batch in whole if read_header(batch).base_offset < log.log_end_offset]
    log.update_high_watermark(log.log_end_offset)
    expected, undecided = committed(history)
    assert log.last_stable_offset == (log.log_end_offset if undecided is None else max(undecided, log.log_start_offset))
    readable = {offset: value for offset, value in expected.items() if log.log_start_offset <= offset < log.last_stable_offset}
    for start in {log.log_start_offset, (log.log_start_offset + log.last_stable_offset) // 2}:
        for max_bytes in (1, 1 << 20):
            seen = {offset: bytes(record.value or b"") for offset, record in read_committed(log, start, max_bytes).items()}
            assert seen == {offset: value for offset, value in readable.items() if offset >= start}


@pytest.mark.parametrize("sync_each", [True, False], ids=["flush.messages=1", "no flush"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_loss_in_transactions_leaves_state_that_agrees_with_the_log(seed: int, sync_each: bool) -> None:
    workload = Transactions(5000 + seed, sync_each)
    workload.run(60)
    assert len(workload.images) > 100
    ended = 0
    for image in workload.images[seed % 2 :: 2]:
        try:
            started = check_start(image)
            if started is None:
                continue
            restarted, log = started
            check_view(image, log)
            ended += len(log.aborting)
            # A clean stop writes snapshots; what is read from them must say the same.
            restarted.close(8)
        except Exception as failure:
            raise AssertionError(f"seed {seed}, sync_each {sync_each}, power lost before operation {image.moment}") from failure
    assert ended > 0, "no image has an aborted transaction: the workload shows nothing"


def test_a_log_that_never_failed_shows_the_same() -> None:
    """The checks themselves, on a workload without a fault."""
    workload = Transactions(77, sync_each=False)
    workload.run(200)
    log = workload.log
    expected, undecided = committed(workload.history)
    assert log.producers.first_undecided_offset() == undecided
    check_producers(log, workload.history, batches_of(log))
    readable = {o: v for o, v in expected.items() if log.log_start_offset <= o < log.last_stable_offset}
    assert {o: bytes(r.value or b"") for o, r in read_committed(log, 0, 500).items()} == readable
