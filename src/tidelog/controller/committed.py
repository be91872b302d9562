"""The image of what is committed: it follows the high watermark, and a snapshot may take its place.

What this process itself appended, as the leader, is taken from memory; all else is read from the log. Records between the
beginning and the end of a metadata transaction come into the image together, at its end. When a snapshot moves the image on,
what lies between is not known: whoever follows has to look at everything.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.controller.loading import image_of_snapshot
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord, decode_record
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.snapshots import Snapshot, SnapshotId

Listener = Callable[[ClusterImage, ClusterImage, ClusterDelta | None], None]
"""Called with (old image, new image, what lies between) for each step, in order; None: a snapshot took the old one's place."""


class AppendedGroup(NamedTuple):
    """An atomic group that this process put into the log. ``size``: in bytes there.

    ``delta`` and ``image`` are what the controller made of it, where it did: what is true before the commit is true after it.
    """

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size: int
    records: Sequence[MetadataRecord]
    delta: ClusterDelta | None = None
    image: ClusterImage | None = None


class CommittedImage:
    """See the module."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.next_offset = image.offset + 1
        """Everything below has been read."""
        self.bytes_since_snapshot = 0
        self.listeners: list[Listener] = []
        self._delta: ClusterDelta | None = None
        self._appended: deque[AppendedGroup] = deque()
        self._position = image.offset, image.epoch, image.timestamp_ms

    @property
    def transaction_open(self) -> bool:
        """Does the log, as far as it is committed, end within a transaction?"""
        return self._delta is not None

    def load(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """A snapshot that reaches further takes the image's place."""
        old, self.image = self.image, image_of_snapshot(self.image.cluster_id, snapshot_id, snapshot)
        self.next_offset = snapshot_id.offset
        self.bytes_since_snapshot = 0
        self._delta = None
        self._appended.clear()
        for listener in self.listeners:
            listener(old, self.image, None)

    def appended(self, group: AppendedGroup) -> None:
        """The leader's log has it: when it is committed, it need not be read."""
        self._appended.append(group)

    def forget_appended(self) -> None:
        """The leadership has ended: what is committed, the log says."""
        self._appended.clear()

    def advance(
        self, log: MetadataLog, high_watermark: int, newest: ClusterImage | None = None, *, turn_bytes: int | None = None
    ) -> bool:
        """Takes what was committed; ``newest``: the leader's own image, which is the next one when all of it is committed.

        With ``turn_bytes`` it stops behind the batch that reaches so far; True: call again, there is more.
        Blocks for what is not in the page cache. MetadataLogError for a record that cannot be applied: the node has to stop.
        """
        self._take_made(high_watermark)
        if self.next_offset >= high_watermark:
            return False
        stop = math.inf if turn_bytes is None else self.bytes_since_snapshot + turn_bytes
        delta = self._delta or ClusterDelta(self.image)
        self._position = self.image.offset, self.image.epoch, self.image.timestamp_ms
        more = True
        while more and self.bytes_since_snapshot < stop:
            more = self._step(log, high_watermark, delta, stop) and self.next_offset < high_watermark
        offset, epoch, timestamp_ms = self._position
        self._delta = delta if delta.transaction_open else None
        if offset == self.image.offset:
            return more
        shared = newest is not None and newest.offset == offset
        old, self.image = self.image, newest if shared and newest is not None else delta.apply(offset, epoch, timestamp_ms)
        if self._delta is not None:
            # What came before the transaction counts, also if its end never comes.
            self._delta = delta.after(self.image)
        for listener in self.listeners:
            listener(old, self.image, delta)
        return more

    def _take_made(self, high_watermark: int) -> None:
        """One group that the controller has replayed on this very image need not be replayed again."""
        group = self._appended[0] if self._appended and self._delta is None else None
        if group is None or group.base_offset != self.next_offset or group.last_offset >= high_watermark:
            return
        if len(self._appended) > 1 and self._appended[1].last_offset < high_watermark:
            # Several are one step.
            return
        if group.delta is None or group.image is None or group.delta.base is not self.image:
            return
        self._appended.popleft()
        old, self.image = self.image, group.image
        self._passed(group.delta, group.last_offset, group.epoch, group.timestamp_ms, group.size)
        for listener in self.listeners:
            listener(old, self.image, group.delta)

    def _step(self, log: MetadataLog, high_watermark: int, delta: ClusterDelta, stop: float) -> bool:
        """One group from memory, or what lies in the log before it; False when nothing more is committed as a whole."""
        group = self._appended[0] if self._appended else None
        if group is None or group.base_offset > self.next_offset:
            return self._read(log, high_watermark if group is None else min(high_watermark, group.base_offset), delta, stop)
        assert group.base_offset == self.next_offset, (group.base_offset, self.next_offset)
        if group.last_offset >= high_watermark:
            return False
        self._appended.popleft()
        for record in group.records:
            delta.replay(record)
        self._passed(delta, group.last_offset, group.epoch, group.timestamp_ms, group.size)
        return True

    def _read(self, log: MetadataLog, until: int, delta: ClusterDelta, stop: float) -> bool:
        began = self.next_offset
        for header, records in log.batches_from(self.next_offset):
            if header.next_offset > until:
                break
            if not header.is_control:
                for record in records:
                    try:
                        delta.replay(decode_record(record.value))
                    except MetadataLogError as error:
                        raise MetadataLogError(f"__cluster_metadata-0, offset {record.offset}: {error}") from error
            self._passed(delta, header.last_offset, header.leader_epoch, header.max_timestamp, header.size)
            if self.bytes_since_snapshot >= stop:
                break
        return self.next_offset > began

    def _passed(self, delta: ClusterDelta, last_offset: int, epoch: int, timestamp_ms: int, size: int) -> None:
        if not delta.transaction_open:
            self._position = last_offset, epoch, timestamp_ms
        self.next_offset = last_offset + 1
        self.bytes_since_snapshot += size
