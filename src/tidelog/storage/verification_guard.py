"""Verifies with the coordinator that a transaction is open before its first records are appended to a partition (KIP-890).

The appending request first asks the coordinator and holds a ``Verification`` meanwhile. It is valid only while it is the one
stored here: a marker that arrives in between removes it, so that an answer about the previous transaction cannot open one that no
marker will ever end. The first batch of the transaction removes it as well; from then on the open transaction is proof enough.

It also stores the lowest sequence that was verified: of several first batches in flight only that one may be appended first.
"""

from __future__ import annotations


class Verification:
    """One verification of a producer, from the request to the first batch. Compared by identity."""

    __slots__ = ("asking", "begun_ms", "epoch", "lowest_sequence", "starts_at_zero", "transactional_id")

    def __init__(self, epoch: int, sequence: int, *, starts_at_zero: bool, transactional_id: str, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.starts_at_zero = starts_at_zero
        """The producer bumps its epoch with each transaction (transaction.version 2), so its sequences start at 0."""
        self.transactional_id = transactional_id
        self.begun_ms = now_ms
        self.asking = 1
        """Batches that wait for the response or are about to be appended."""

    def asked_again(self, epoch: int, sequence: int, *, starts_at_zero: bool) -> None:
        """Another batch asks before the first is appended: a newer epoch starts again, the same epoch keeps its lowest
        sequence."""
        self.asking += 1
        self.starts_at_zero = starts_at_zero
        if starts_at_zero and epoch != self.epoch:
            if epoch > self.epoch:
                self.epoch, self.lowest_sequence = epoch, sequence
        else:
            self.lowest_sequence = min(self.lowest_sequence, sequence)

    def served(self) -> None:
        """One batch has its response, and was appended if that allowed it."""
        self.asking -= 1


NOT_REQUIRED = Verification(-1, 0, starts_at_zero=False, transactional_id="", now_ms=0)
"""For a broker that does not verify (transaction.partition.verification.enable=false)."""


MOST_REMEMBERED = 10_000
"""Idle verifications kept per partition, besides those in flight; bounds the memory that clients can use."""


class Verifications:
    """The verifications of one partition, one per producer."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(
        self, producer_id: int, epoch: int, sequence: int, *, starts_at_zero: bool, transactional_id: str, now_ms: int
    ) -> Verification:
        """The verification to request; the existing one, if there is one."""
        found = self._by_producer.get(producer_id)
        if found is None:
            if len(self._by_producer) >= MOST_REMEMBERED:
                self._make_room()
            found = self._by_producer[producer_id] = Verification(
                epoch, sequence, starts_at_zero=starts_at_zero, transactional_id=transactional_id, now_ms=now_ms
            )
        else:
            found.asked_again(epoch, sequence, starts_at_zero=starts_at_zero)
        return found

    def _make_room(self) -> None:
        """Removes the oldest idle verification; only the order of first batches is lost."""
        for producer_id, one in self._by_producer.items():
            if not one.asking:
                del self._by_producer[producer_id]
                return

    def get(self, producer_id: int) -> Verification | None:
        """The current verification."""
        return self._by_producer.get(producer_id)

    def holds(self, producer_id: int, proof: Verification | None) -> bool:
        """Whether ``proof`` was not invalidated by a marker, a first batch or expiry."""
        return proof is not None and (proof is NOT_REQUIRED or self._by_producer.get(producer_id) is proof)

    def end(self, producer_id: int) -> Verification | None:
        """A transactional batch of the producer is in the log; removes and returns its verification."""
        return self._by_producer.pop(producer_id, None)

    def marked(self, producer_id: int, epoch: int) -> None:
        """A marker of ``epoch`` is in the log. A verification may be about the transaction that it ended, and is removed. With
        transaction.version 2 each transaction has its own epoch and the marker carries the next one, so a verification in that
        epoch is about a future transaction and stays."""
        asked = self._by_producer.get(producer_id)
        if asked is not None and not (asked.starts_at_zero and asked.epoch >= epoch):
            del self._by_producer[producer_id]

    def abandon(self, producer_id: int, proof: Verification) -> None:
        """The coordinator does not know this transaction: removes the verification, unless other batches wait for it. A fenced
        instance must not remove the verification of its successor."""
        if not proof.asking and self._by_producer.get(producer_id) is proof:
            del self._by_producer[producer_id]

    def clear(self) -> None:
        """Removes all verifications."""
        self._by_producer.clear()

    def remove_begun_before(self, then_ms: int) -> None:
        """Removes verifications that were never used."""
        for producer_id in [producer_id for producer_id, one in self._by_producer.items() if one.begun_ms <= then_ms]:
            del self._by_producer[producer_id]
