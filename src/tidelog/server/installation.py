"""What a process of ``tidelog start --processes N`` has from its supervisor, and what the two say to each other.

The environment variable names descriptors: the listening sockets that all processes accept from, and one end of a socket pair.
Over that the process says ``ready``, and the supervisor says ``open`` when clients may come in. During a restart of all it asks
``spare``, and the process says how many partitions lack it in their ISR and how many cannot do without it. Lines of ASCII.

The end of the stream means that the supervisor has died, however that happened: then the process stops in order, since nothing
would start it again.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tidelog.metadata.sparing import Sparing
    from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

VARIABLE: Final = "TIDELOG_PROCESS"
READY, OPEN, SPARE = b"ready", b"open", b"spare"
_READ_BYTES: Final = 4096


Sockets = Mapping[str, socket.socket]


class Place(NamedTuple):
    """A process's place in the installation."""

    node_id: int
    first: bool
    """Whether it is the one whose warnings about settings are enough."""
    control: int
    """Descriptor of the socket to the supervisor."""
    sockets: Mapping[str, int]
    """Descriptors of the shared listening sockets, by listener name."""
    http: int | None
    """Descriptor of the shared listening socket of ``tidelog.http.listener``; None when it is turned off."""
    folder: str
    """Where the processes serve each other their pages, on Unix sockets."""
    node_ids: tuple[int, ...]
    """Of all processes."""


def place() -> Place | None:
    """Of this process; None when no supervisor started it. Child processes of this one do not inherit it."""
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return None
    values = json.loads(text)
    values["node_ids"] = tuple(values["node_ids"])
    found = Place(**values)
    for descriptor in (found.control, *found.sockets.values(), *([] if found.http is None else [found.http])):
        os.set_inheritable(descriptor, False)
    return found


class SupervisorLink:
    """The connection to the supervisor."""

    def __init__(
        self,
        place: Place,
        runtime: LoopRuntime,
        *,
        opened: Callable[[Sockets], None],
        spare: Callable[[], Sparing],
        gone: Callable[[], None],
    ) -> None:
        """``opened``: called with the shared sockets, by listener name, when clients may come in there. ``spare``: called after
        ``ready``. ``gone``: there is no supervisor any more."""
        self._runtime = runtime
        self._sockets = {name: socket.socket(fileno=each) for name, each in place.sockets.items()}
        self._control = socket.socket(fileno=place.control)
        self._control.setblocking(False)
        self._opened = opened
        self._spare = spare
        self._gone = gone
        self._rest = b""
        runtime.loop.add_reader(self._control.fileno(), self._read)

    def ready(self) -> None:
        """Tells the supervisor that this process serves."""
        self._say(READY)

    def close(self) -> None:
        """Says and hears nothing more."""
        if self._control.fileno() >= 0:
            self._runtime.loop.remove_reader(self._control.fileno())
            self._control.close()

    def _say(self, line: bytes) -> None:
        try:
            self._control.send(line + b"\n")
        except OSError as error:
            log.debug("the supervisor was not told %s: %s", line, error)

    def _read(self) -> None:
        try:
            data = self._control.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            self._gone()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == OPEN:
                self._opened(self._sockets)
            elif line == SPARE:
                found = self._spare()
                self._say(b"%b %d %d" % (SPARE, found.behind, found.needed))
