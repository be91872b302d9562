"""The committed image: it follows the high watermark and may be replaced by a snapshot.

Records that this process appended as the leader are taken from memory; all others are read from the log. The records of a
metadata transaction enter the image together, at its end. When a snapshot replaces the image, the changes in between are unknown,
so listeners must look at everything.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.controller.snapshot_loading import image_of_snapshot
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord, decode_record
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.snapshots import Snapshot, SnapshotId

Listener = Callable[[ClusterImage, ClusterImage, ClusterDelta | None], None]
"""Called with (old image, new image, delta) for each step, in order. The delta is None when a snapshot replaced the image."""


class AppendedGroup(NamedTuple):
    """An atomic group that this process appended to the log; ``size`` in bytes.

    ``delta`` and ``image`` are what the controller computed from it, if it did; the commit does not change them.
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
    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.next_offset = image.offset + 1
        """Everything below this offset has been read."""
        self.bytes_since_snapshot = 0
        self.listeners: list[Listener] = []
        self._delta: ClusterDelta | None = None
        self._appended: deque[AppendedGroup] = deque()
        self._position = image.offset, image.epoch, image.timestamp_ms

    @property
    def transaction_open(self) -> bool:
        """Whether the committed log ends inside a metadata transaction."""
        return self._delta is not None

    def load(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Replaces the image by a snapshot that is ahead of it."""
        old, self.image = self.image, image_of_snapshot(self.image.cluster_id, snapshot_id, snapshot)
        self.next_offset = snapshot_id.offset
        self.bytes_since_snapshot = 0
        self._delta = None
        self._appended.clear()
        for listener in self.listeners:
            listener(old, self.image, None)

    def appended(self, group: AppendedGroup) -> None:
        """Remembers a group appended by the leader, so that it need not be read when it is committed."""
        self._appended.append(group)

    def forget_appended(self) -> None:
        """Drops remembered groups when the leadership ends; from then on the log is read."""
        self._appended.clear()

    def advance(
        self, log: MetadataLog, high_watermark: int, newest: ClusterImage | None = None, *, turn_bytes: int | None = None
    ) -> bool:
        """Applies what is committed. ``newest`` is the leader's own image, which is the next image once all of it is
        committed.

        With ``turn_bytes`` it stops after the batch that reaches this size; True means that there is more. Blocks on data outside
        the page cache. MetadataLogError for a record that cannot be applied: the node has to stop.
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
            # Records before the transaction count even if the transaction never ends.
            self._delta = delta.after(self.image)
        for listener in self.listeners:
            listener(old, self.image, delta)
        return more

    def _take_made(self, high_watermark: int) -> None:
        """Uses a group that the controller has already replayed on this very image."""
        group = self._appended[0] if self._appended and self._delta is None else None
        if group is None or group.base_offset != self.next_offset or group.last_offset >= high_watermark:
            return
        if len(self._appended) > 1 and self._appended[1].last_offset < high_watermark:
            # Several groups become one step.
            return
        if group.delta is None or group.image is None or group.delta.base is not self.image:
            return
        self._appended.popleft()
        old, self.image = self.image, group.image
        self._passed(group.delta, group.last_offset, group.epoch, group.timestamp_ms, group.size)
        for listener in self.listeners:
            listener(old, self.image, group.delta)

    def _step(self, log: MetadataLog, high_watermark: int, delta: ClusterDelta, stop: float) -> bool:
        """Applies one group from memory, or the log up to it; False when no further complete group is committed."""
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
