"""A response on its way out: buffers and slices of files, to a socket that takes what it can.

What is decided here (docs/adr/0007-how-a-fetch-is-sent.md has the measurements):

- small slices are copied from the page cache into a scratch buffer and leave with the bytes around them in one call;
- large slices that are in the page cache leave by ``sendfile``, as much as the socket takes;
- what is not in the page cache is read by a worker thread, a chunk at a time, and leaves as bytes. The loop never reads it.

Invariants: bytes leave in order; what was not taken by the socket stays queued as slices, not as copies; a queue holds at most
the answers of one turn, because its connection reads no further request before it is empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from tidelog.model.ports import Buffer, File, FileSlice
from tidelog.server.disk import Descriptor, DiskFile
from tidelog.server.serving.residency import read_resident, resident_length
from tidelog.server.serving.transport import IOV_MAX, PlainTransport

Part = Buffer | FileSlice

SMALL_SLICE = 128 * 1024
"""Slices up to this are copied: below it a copy is cheaper than a call of its own."""
GATHER_BYTES = 128 * 1024
"""How much leaves in one call at most; the size of the scratch buffer."""
CHUNK = 1024 * 1024
"""How much of a large slice is looked at and sent at a time."""
COLD_CHUNK = 256 * 1024
"""How much of a slice is read in a thread at a time: it is held as bytes until the client has taken it."""
TURN_BYTES = 2 * 1024 * 1024
"""After so many bytes the other connections have their turn."""

SENT = 0
"""Everything has left."""
PEER_SLOW = 1
"""The socket is full: call ``pump`` again when it is writable."""
COLD = 2
"""Run ``cold_read`` in a thread, hand its result to ``warmed``, then ``pump`` again."""
TURN_OVER = 3
"""More could leave: call ``pump`` again after the others had their turn."""

_scratch = bytearray(GATHER_BYTES)
_scratch_view = memoryview(_scratch)
"""Shared by all connections of the loop: it never holds anything between two calls."""


class TruncatedFile(OSError):
    """A file ended before a slice of it did; the length was promised already, so only the connection can end."""


def _open(file: File) -> Descriptor | None:
    """The descriptor, open as long as the result is kept; None for a file that is no file of the system (the simulator's)."""
    return file.descriptor() if isinstance(file, DiskFile) else None


class Output:
    """What one connection still has to send."""

    __slots__ = ("_queue", "_resident_until", "_transport")

    def __init__(self, transport: PlainTransport) -> None:
        self._transport = transport
        self._queue: deque[Part] = deque()
        self._resident_until = -1
        """How far the slice at the head has been found resident, as a position in its file."""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, parts: Sequence[Part]) -> None:
        """Queue ``parts`` behind what is being sent already."""
        self._queue.extend(parts)

    def send(self, parts: Sequence[Part]) -> int:
        """Queue ``parts`` and send what can be sent. OSError: the connection or the disk failed, nothing more can be sent."""
        self._queue.extend(parts)
        return self.pump()

    def send_small(self, data: Buffer) -> int:
        """The same for one buffer; must be called with nothing queued. The common answer: one call, nothing queued."""
        taken = self._transport.send(data)
        if taken == len(data):
            return SENT
        self._queue.append(memoryview(data)[taken:])
        return PEER_SLOW

    def pump(self) -> int:
        """Send on; SENT, PEER_SLOW, COLD or TURN_OVER. OSError as for ``send``."""
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
        """The job behind COLD: it reads the first chunk of the head of the queue."""
        head = self._queue[0]
        assert isinstance(head, FileSlice)
        file, position, length = head.file, head.position, min(head.length, COLD_CHUNK)
        return lambda: file.read(position, length)

    def warmed(self, data: bytes) -> None:
        """What ``cold_read`` read: it takes the place of its part of the slice."""
        head = self._queue[0]
        assert isinstance(head, FileSlice)
        if len(data) < min(head.length, COLD_CHUNK):
            raise TruncatedFile(f"{head.file.path} ends before position {head.position + head.length}")
        self._drop_from_head(head, len(data))
        self._queue.appendleft(data)

    def clear(self) -> None:
        """The connection is gone: let go of buffers and files."""
        self._queue.clear()

    def _send_large(self, head: FileSlice) -> tuple[int, int]:
        descriptor = _open(head.file)
        if descriptor is None or not self._transport.can_sendfile:
            return self._send_copied(head, descriptor)
        fd = descriptor.fd
        position = head.position
        if position >= self._resident_until:
            length = resident_length(fd, position, min(head.length, CHUNK))
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
        """For a transport that must see the bytes, and for files that are no files of the system."""
        wanted = min(head.length, GATHER_BYTES)
        if descriptor is None:
            data: Buffer = head.file.read(head.position, wanted)
        else:
            count = read_resident(descriptor.fd, head.position, _scratch_view[:wanted])
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
        """Buffers and small slices from the head of the queue, in one call."""
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
        count = read_resident(descriptor.fd, part.position, into)
        if 0 <= count < part.length:
            # Only the end of the file, or the end of what is resident: the thread finds out which.
            return None
        return into if count == part.length else None

    def _drop(self, count: int) -> None:
        """Take ``count`` sent bytes from the head of the queue."""
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
