"""Proof that a transaction is known to its coordinator before the first of its records enters a partition (KIP-890).

Decided here: which proof counts. Whoever appends asks the coordinator first, and holds a ``Verification`` meanwhile. It is worth
something only as long as it is the one that is kept here: a marker that arrives in between takes it away, so that an answer to
a question about the transaction before cannot open one that nobody will ever end. The first batch of the transaction takes it
away, too; from then on the open transaction is proof enough.

It also remembers the lowest sequence it was asked for: of several first batches under way only that one may go in first.
"""

from __future__ import annotations


class Verification:
    """One producer's question to its coordinator, from the question to the first batch. Identity is what counts."""

    __slots__ = ("asking", "begun_ms", "epoch", "lowest_sequence", "starts_at_zero", "transactional_id")

    def __init__(self, epoch: int, sequence: int, *, starts_at_zero: bool, transactional_id: str, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.starts_at_zero = starts_at_zero
        """The producer bumps its epoch with each transaction (transaction.version 2), so its sequences begin anew."""
        self.transactional_id = transactional_id
        self.begun_ms = now_ms
        self.asking = 1
        """Batches that wait for an answer, or are about to be appended by it."""

    def asked_again(self, epoch: int, sequence: int, *, starts_at_zero: bool) -> None:
        """Another batch asks before the first is in: a newer epoch begins anew, the same one keeps its lowest sequence."""
        self.asking += 1
        self.starts_at_zero = starts_at_zero
        if starts_at_zero and epoch != self.epoch:
            if epoch > self.epoch:
                self.epoch, self.lowest_sequence = epoch, sequence
        else:
            self.lowest_sequence = min(self.lowest_sequence, sequence)

    def served(self) -> None:
        """One batch has its answer, and was appended if that allowed it."""
        self.asking -= 1


NOT_REQUIRED = Verification(-1, 0, starts_at_zero=False, transactional_id="", now_ms=0)
"""For a broker that was told not to verify (transaction.partition.verification.enable=false)."""


MOST_REMEMBERED = 10_000
"""So many questions of one partition are kept besides those that are under way, whatever clients make up."""


class Verifications:
    """All questions of one partition that are under way, one per producer."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(
        self, producer_id: int, epoch: int, sequence: int, *, starts_at_zero: bool, transactional_id: str, now_ms: int
    ) -> Verification:
        """The question to be asked; the one that is under way already, if there is one."""
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
        """Forgets the oldest question that is not under way: of it only the order of first batches is lost."""
        for producer_id, one in self._by_producer.items():
            if not one.asking:
                del self._by_producer[producer_id]
                return

    def get(self, producer_id: int) -> Verification | None:
        """The one that counts now."""
        return self._by_producer.get(producer_id)

    def holds(self, producer_id: int, proof: Verification | None) -> bool:
        """Whether ``proof`` was not overtaken by a marker, a first batch or time."""
        return proof is not None and (proof is NOT_REQUIRED or self._by_producer.get(producer_id) is proof)

    def end(self, producer_id: int) -> Verification | None:
        """A transactional batch of the producer is in the log; what was known of the question."""
        return self._by_producer.pop(producer_id, None)

    def marked(self, producer_id: int, epoch: int) -> None:
        """A marker of ``epoch`` is in the log. An answer may be about the transaction that it ended, and then counts no more; but
        where each transaction has an epoch of its own, and the marker already the next one's (transaction.version 2), a question
        of that epoch is about a transaction that comes."""
        asked = self._by_producer.get(producer_id)
        if asked is not None and not (asked.starts_at_zero and asked.epoch >= epoch):
            del self._by_producer[producer_id]

    def abandon(self, producer_id: int, proof: Verification) -> None:
        """The coordinator does not know this producer: nothing is kept of it, unless others ask as well. An older instance that
        is told of its end must not take away what the one that took over is about to append by."""
        if not proof.asking and self._by_producer.get(producer_id) is proof:
            del self._by_producer[producer_id]

    def clear(self) -> None:
        """Nothing is under way any more."""
        self._by_producer.clear()

    def remove_begun_before(self, then_ms: int) -> None:
        """Forgets questions that nobody came back for."""
        for producer_id in [producer_id for producer_id, one in self._by_producer.items() if one.begun_ms <= then_ms]:
            del self._by_producer[producer_id]
