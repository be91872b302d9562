"""No transaction is both committed and aborted, none is forgotten, and no epoch goes back, whatever is lost, doubled or late."""

from __future__ import annotations

import os

from tests.property.transaction_chaos import Chaos

SEEDS = int(os.environ.get("TIDELOG_TRANSACTION_SEEDS", "1000"))
STEPS = 150


def run(seed: int) -> Chaos:
    chaos = Chaos(seed)
    for _ in range(STEPS):
        chaos.step()
    chaos.settle()
    chaos.judge()
    return chaos


def test_transactions_end_once_and_as_their_clients_were_told() -> None:
    """``TIDELOG_TRANSACTION_SEEDS=20000`` for a long run; a failure names its seed."""
    begun = told = 0
    for seed in range(SEEDS):
        try:
            chaos = run(seed)
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
        begun += len(chaos.transactions)
        told += sum(transaction.told is not None for transaction in chaos.transactions)
    assert begun > 2 * SEEDS and told > SEEDS, (begun, told)
