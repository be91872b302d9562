"""Sends responses: buffers and slices of files, to a socket that takes what it can.

Rules (docs/adr/0007-how-a-fetch-is-sent.md has the measurements):

- small slices are copied from the page cache into a scratch buffer and leave with the bytes around them in one call;
- large slices that are in the page cache leave by ``sendfile``, as much as the socket takes;
- slices that are not in the page cache are read by a worker thread, a chunk at a time, and leave as bytes; the loop never reads
  them.

Invariants: bytes leave in order; unsent bytes stay queued as slices, not as copies; a queue holds at most the answers of one
turn, because its connection reads no further request until the queue is empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from tidelog.model.ports import Buffer, File, FileSlice
from tidelog.server.disk import Descriptor, DiskFile
from tidelog.server.serving.page_cache import read_resident, resident_length
from tidelog.server.serving.transport import IOV_MAX, Transport

Part = Buffer | FileSlice

SMALL_SLICE = 128 * 1024
"""Slices up to this size are copied; a copy is then cheaper than a separate system call."""
GATHER_BYTES = 128 * 1024
"""The most bytes sent in one call; the size of the scratch buffer."""
CHUNK = 1024 * 1024
"""How many bytes of a large slice are checked for residency and sent at a time."""
COLD_CHUNK = 256 * 1024
"""How many bytes of a slice a thread reads at a time; they are held in memory until the client has taken them."""
TURN_BYTES = 2 * 1024 * 1024
"""After this many bytes other connections get their turn."""

SENT = 0
"""Everything has left."""
PEER_SLOW = 1
"""The socket is full: call ``pump`` again when it is writable."""
COLD = 2
"""Run ``cold_read`` in a thread, hand its result to ``warmed``, then ``pump`` again."""
TURN_OVER = 3
"""More could leave: call ``pump`` again after other connections had their turn."""

_scratch = bytearray(GATHER_BYTES)
_scratch_view = memoryview(_scratch)
"""Shared by all connections of the loop; never holds anything between two calls."""


class TruncatedFile(OSError):
    """A file ended before a slice of it did. The length was already sent, so the connection must be closed."""


def _open(file: File) -> Descriptor | None:
    """The descriptor, which stays open while the result is referenced; None for a file that the system does not have (the
    simulator's)."""
    return file.descriptor() if isinstance(file, DiskFile) else None


class Output:
    """The bytes that one connection still has to send."""

    __slots__ = ("_queue", "_resident_until", "_transport")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._queue: deque[Part] = deque()
        self._resident_until = -1
        """Position in the file up to which the slice at the head is known to be resident."""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, parts: Sequence[Part]) -> None:
        """Queues ``parts`` behind what is being sent already."""
        self._queue.extend(parts)

    def send(self, parts: Sequence[Part]) -> int:
        """Queues ``parts`` and sends what the socket takes; returns SENT, PEER_SLOW, COLD or TURN_OVER. OSError: the
        connection or the disk failed, nothing more can be sent."""
        self._queue.extend(parts)
        return self.pump()

    def pump(self) -> int:
        """Continues sending: SENT, PEER_SLOW, COLD or TURN_OVER. OSError as for ``send``."""
        queue = self._queue
        left = TURN_BYTES
        while queue:
            head = queue[0]
            if type(head) is FileSlice and head.length > SMALL_SLICE:
                state, taken = self._send_large(head)
            else:
                state, taken = self._send_gathered()
            if state != SENT:
                return state
            left -= taken
            if left <= 0 and queue:
                return TURN_OVER
        return SENT

    def cold_read(self) -> Callable[[], bytes]:
        """The job to run for COLD: reads the first chunk of the head of the queue."""
        head = self._queue[0]
        assert isinstance(head, FileSlice)
        file, position, length = head.file, head.position, min(head.length, COLD_CHUNK)
        return lambda: file.read(position, length)

    def warmed(self, data: bytes) -> None:
        """Replaces a part of the slice at the head with ``data``, the result of ``cold_read``."""
        head = self._queue[0]
        assert isinstance(head, FileSlice)
        if len(data) < min(head.length, COLD_CHUNK):
            raise TruncatedFile(f"{head.file.path} ends before position {head.position + head.length}")
        self._drop_from_head(head, len(data))
        self._queue.appendleft(data)

    def clear(self) -> None:
        """Drops buffers and files when the connection has closed."""
        self._queue.clear()

    def _send_large(self, head: FileSlice) -> tuple[int, int]:
        descriptor = _open(head.file)
        if descriptor is None or not self._transport.can_sendfile:
            return self._send_copied(head, descriptor)
        fd = descriptor.fd
        position = head.position
        if position >= self._resident_until:
            length = resident_length(descriptor, position, min(head.length, CHUNK))
            if not length:
                return COLD, 0
            self._resident_until = position + length
        wanted = min(self._resident_until - position, head.length)
        taken = self._transport.send_file(fd, position, wanted)
        if taken < 0:
            return PEER_SLOW, 0
        if not taken:
            raise TruncatedFile(f"{head.file.path} ends at {position}, before {position + head.length}")
        self._drop_from_head(head, taken)
        return (SENT if taken == wanted else PEER_SLOW), taken

    def _send_copied(self, head: FileSlice, descriptor: Descriptor | None) -> tuple[int, int]:
        """Sends through the scratch buffer: for a transport that must see the bytes, and for the simulator's files."""
        wanted = min(head.length, GATHER_BYTES)
        if descriptor is None:
            data: Buffer = head.file.read(head.position, wanted)
        else:
            count = read_resident(descriptor, head.position, _scratch_view[:wanted])
            if count < 0:
                return COLD, 0
            data = _scratch_view[:count]
        if not len(data):
            raise TruncatedFile(f"{head.file.path} ends at {head.position}, before {head.position + head.length}")
        taken = self._transport.send(data)
        self._drop_from_head(head, taken)
        return (SENT if taken == len(data) else PEER_SLOW), taken

    def _drop_from_head(self, head: FileSlice, count: int) -> None:
        if count == head.length:
            self._queue.popleft()
            self._resident_until = -1
        elif count:
            self._queue[0] = FileSlice(head.file, head.position + count, head.length - count)

    def _send_gathered(self) -> tuple[int, int]:
        """Sends buffers and small slices from the head of the queue in one call."""
        buffers: list[Buffer] = []
        data: Buffer | None
        total = 0
        filled = 0
        more = False
        for part in self._queue:
            if isinstance(part, FileSlice):
                length = part.length
                if length > SMALL_SLICE or filled + length > GATHER_BYTES:
                    more = True
                    break
                data = self._small(part, filled)
                if data is None:
                    if not buffers:
                        return COLD, 0
                    more = True
                    break
                filled += length
            else:
                data = part
                length = len(part)
            buffers.append(data)
            total += length
            if total >= GATHER_BYTES or len(buffers) == IOV_MAX:
                more = len(buffers) < len(self._queue)
                break
        if len(buffers) == 1 and not more:
            taken = self._transport.send(buffers[0])
        else:
            taken = self._transport.send_all(buffers, more=more)
        self._drop(taken)
        return (SENT if taken == total else PEER_SLOW), taken

    def _small(self, part: FileSlice, filled: int) -> Buffer | None:
        """The slice's bytes, in the scratch buffer from ``filled`` on; None when they are not in the page cache."""
        descriptor = _open(part.file)
        if descriptor is None:
            return part.read()
        into = _scratch_view[filled : filled + part.length]
        count = read_resident(descriptor, part.position, into)
        if 0 <= count < part.length:
            # Either the file or its resident part ends here; the thread finds out which.
            return None
        return into if count == part.length else None

    def _drop(self, count: int) -> None:
        """Removes ``count`` sent bytes from the head of the queue."""
        queue = self._queue
        while queue:
            part = queue[0]
            length = part.length if type(part) is FileSlice else len(part)  # type: ignore[arg-type]
            if count < length:
                break
            queue.popleft()
            count -= length
        if count:
            part = queue[0]
            if isinstance(part, FileSlice):
                queue[0] = FileSlice(part.file, part.position + count, part.length - count)
            else:
                queue[0] = memoryview(part)[count:]
