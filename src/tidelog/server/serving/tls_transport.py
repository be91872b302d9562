"""The bytes of one connection under TLS: the interface of ``PlainTransport`` around a non-blocking ``ssl.SSLSocket``.

What OpenSSL demands, measured with Python 3.11 and OpenSSL 3.0:

- A larger ``send`` that the socket cannot take fails after a part has left, without a count. So at most one record (16 KiB) is
  sent in a call, and after a failure the same bytes are sent again.
- Each record is a call of the kernel of its own, after which the kernel sends a packet: several are held together
  (``_cork``).
- Decrypted bytes may wait inside OpenSSL, where the selector does not see them: ``holds_bytes``.
- A read may have to write first and the reverse (TLS 1.3 key updates): ``read_wants_write``, ``write_wants_read``.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Sequence

from tidelog.model.ports import Buffer

RECORD_BYTES = 16 * 1024
RECEIVE_BYTES = 128 * 1024
"""A ``receive`` ends after this many bytes, so that other connections get their turn."""
_CORK = getattr(socket, "TCP_CORK", 0)
"""Linux: what would be a small packet waits for more bytes. Elsewhere this is 0."""


class TlsTransport:
    """A connection after its handshake."""

    __slots__ = ("_early", "_ended", "_holds", "_retry", "_socket", "fd", "read_wants_write", "write_wants_read")

    can_sendfile = False

    def __init__(self, secured: ssl.SSLSocket) -> None:
        self._socket = secured
        self.fd = secured.fileno()
        self._early = b""
        """A byte that was read to find out whether the peer has ended."""
        self._retry = b""
        """What OpenSSL has accepted and not sent: the next bytes of the stream."""
        self._ended = False
        self._holds = bool(_CORK) and secured.family in (socket.AF_INET, socket.AF_INET6)
        """Whether the kernel can hold records together."""
        self.read_wants_write = False
        """The last read has to send first: try it again soon."""
        self.write_wants_read = False
        """The last write has to receive first: try it again soon."""

    @property
    def holds_bytes(self) -> bool:
        """Whether the next ``receive`` returns something although the socket is silent."""
        return bool(self._early) or self._ended or self._socket.pending() > 0

    def receive(self, buffer: bytearray | memoryview) -> int:
        """Bytes read into ``buffer``; 0 at the end of the stream, -1 when nothing has arrived. OSError: the connection is
        lost."""
        room = memoryview(buffer)
        count = 0
        if self._early:
            room[:1], self._early, count = self._early, b"", 1
        self.read_wants_write = False
        try:
            while count < len(room) and not self._ended:
                taken = self._socket.recv_into(room[count:])
                self._ended = not taken
                count += taken
                if count >= RECEIVE_BYTES or (taken < RECORD_BYTES and not self._socket.pending()):
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            self.read_wants_write = True
        return count or (0 if self._ended else -1)

    def peer_has_ended(self) -> bool:
        """Whether the peer has closed and everything that it sent was read. OSError: the connection is lost."""
        if self._early:
            return False
        if not self._ended:
            try:
                self._early = self._socket.recv(1)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return False
            self._ended = not self._early
        return self._ended

    def send(self, data: Buffer) -> int:
        """Bytes taken, 0 when the socket is full. The next call begins with the bytes that were not taken. ConnectionError: the
        connection is lost."""
        room = memoryview(data)
        piece: Buffer = self._retry
        sent = 0
        self.write_wants_read = False
        several = self._holds and len(room) > RECORD_BYTES
        if several:
            self._cork(1)
        try:
            if piece:
                sent = self._socket.send(piece)
                self._retry = b""
            while sent < len(room):
                piece = room[sent : sent + RECORD_BYTES]
                sent += self._socket.send(piece)
        except ssl.SSLWantWriteError:
            self._retry = bytes(piece)
        except ssl.SSLWantReadError:
            self._retry = bytes(piece)
            self.write_wants_read = True
        except ssl.SSLError as error:
            # Not of any of Python's errors for connections: the peer is gone, or has ended its side of TLS.
            raise ConnectionResetError(f"TLS ended: {error}") from error
        finally:
            if several:
                self._cork(0)
        return sent

    def _cork(self, held: int) -> None:
        """Begins or ends to hold records together; at the end all that the kernel has leaves at once."""
        self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, held)

    def send_all(self, buffers: Sequence[Buffer], *, more: bool) -> int:
        """``send`` of several buffers, joined, because a record is encrypted as a whole."""
        return self.send(b"".join(buffers))

    def send_file(self, fd: int, position: int, length: int) -> int:
        raise OSError("bytes of a file are encrypted before they are sent")

    def close(self) -> None:
        """Says goodbye, if the socket takes it, and closes the socket."""
        # ValueError: the handshake failed, or the peer was faster.
        with contextlib.suppress(OSError, ValueError):
            self._socket.unwrap()
        self._socket.close()
