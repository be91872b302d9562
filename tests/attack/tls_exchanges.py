"""Mutated TLS handshakes against a listener's own context, in memory: each ends in an error that the node catches and explains.

``python -m tests.attack.tls_exchanges SEED COUNT``. Nine of ten exchanges change the first flight of the client, the others a
later one. Both protocol versions, with and without client certificates.
"""

from __future__ import annotations

import contextlib
import random
import ssl
import sys
from collections import Counter

from tests.unit.server.serving.tls_pairs import client_context, listener
from tidelog.server.serving.tls_handshake import explain

HELLOS = 64
RECORD_HEADER = 5


class Ends:
    """A client and the listener, joined by memory; the bytes between them pass through the caller."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext | None) -> None:
        self.to_server, self.to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(self.to_server, self.to_client, server_side=True)
        self.from_client = ssl.MemoryBIO()
        self.client = None if client is None else client.wrap_bio(self.to_client, self.from_client, server_hostname="localhost")

    def flight(self) -> bytes:
        """The client's next bytes; empty when it has none, or has given up."""
        assert self.client is not None
        # What it wants to read, or an alert that it now sends.
        with contextlib.suppress(ssl.SSLError):
            self.client.do_handshake()
        return self.from_client.read()

    def take(self, data: bytes) -> bool:
        """Whether the server's handshake is complete after these bytes. OSError, ValueError: it has failed."""
        self.to_server.write(data)
        try:
            self.server.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True


def changed(rng: random.Random, data: bytes) -> bytes:
    """The bytes with some of them changed behind the first record's header, cut off, put in or repeated."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(RECORD_HEADER, len(found)) if len(found) > RECORD_HEADER else 0
        match rng.randrange(7):
            case 0 if found:
                found[at] ^= 1 << rng.randrange(8)
            case 1 if found:
                found[at] = rng.randrange(256)
            case 2:
                found[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 3:
                del found[at : at + rng.randrange(1, 9)]
            case 4:
                end = at + rng.randrange(1, 60)
                found[at:at] = found[at:end]
            case 5 if len(found) > RECORD_HEADER:
                # The lengths agree with what is there, so the parser goes deeper.
                found[3:5] = min(len(found) - RECORD_HEADER, 0xFFFF).to_bytes(2)
            case _ if found:
                found[at : at + 2] = rng.choice((b"\0\0", b"\xff\xff", b"\x7f\xff", b"\0\1"))[: len(found) - at]
    return bytes(found)


def contexts() -> list[tuple[ssl.SSLContext, ssl.SSLContext]]:
    """(server, client) of each kind of listener."""
    old = client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    return [
        (listener().context, client_context()),
        (listener(enabled_protocols="TLSv1.2").context, old),
        (listener(client_auth="required").context, client_context(shows=True)),
    ]


def attack(seed: int, count: int) -> Counter[str]:
    """How ``count`` handshakes ended: ``failed``, ``waiting`` for more bytes, ``complete``. An error that the node would not
    catch escapes; AssertionError for a changed handshake that was complete."""
    rng, ended = random.Random(seed), Counter[str]()
    kinds = contexts()
    hellos = [[Ends(*kind).flight() for _ in range(HELLOS)] for kind in kinds]
    for number in range(count):
        kind = rng.randrange(len(kinds))
        server, client = kinds[kind]
        later = rng.random() < 0.1
        ends = Ends(server, client if later else None)
        try:
            if later:
                outcome = changed_later(rng, ends)
            else:
                hello = rng.choice(hellos[kind])
                sent = changed(rng, hello)
                assert not ends.take(sent), f"handshake {number} of seed {seed} was complete after one flight"
                outcome = "waiting"
        except (OSError, ValueError) as error:
            text = explain(error)
            assert text and "Traceback" not in text
            outcome = "failed"
        ended[outcome] += 1
        assert outcome != "complete", f"handshake {number} of seed {seed} was complete"
    return ended


def changed_later(rng: random.Random, ends: Ends) -> str:
    """A handshake of which one flight after the first is changed; "same" when the change left it as it was."""
    ends.take(ends.flight())
    second = ends.flight()
    sent = changed(rng, second) if second else b""
    complete = ends.take(sent)
    if complete and second.startswith(sent[: len(second)]):
        return "same"
    return "complete" if complete else "waiting"


if __name__ == "__main__":
    print(dict(attack(int(sys.argv[1]), int(sys.argv[2]))))
