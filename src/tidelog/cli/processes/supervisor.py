"""Runs the processes of ``tidelog start --processes N``: starts them in order, starts again what has ended, stops them in order.

``preparing`` executes this module in its own place, with a plan and open descriptors. It imports nothing of a broker: it takes a
third of a node's memory, and has little that could fail. It holds the listening sockets of first contact, so that a connection
waits there while a process is started again, and a lock that its processes hold too: it is free when the last of them has ended.
With ``--console`` it starts that, too, once clients are served, and ends it first.

A process that loses its supervisor stops in order (``server.installation``), so a killed supervisor leaves nothing behind; what
runs the supervisor (systemd, a container) starts it again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import TYPE_CHECKING, Final

from tidelog.cli.processes.plan import Plan, Started
from tidelog.server import logging_setup
from tidelog.server.installation import OPEN, READY, SPARE, VARIABLE
from tidelog.server.signals import ending_signals

if TYPE_CHECKING:
    from tidelog.cli.console_process import ConsoleProcess

log = logging.getLogger("tidelog.processes")

TICK_S: Final = 0.05
"""How often what waits for a time is looked at. Nothing wakes the supervisor while all is well."""
FIRST_ALONE_S: Final = 2.0
"""How long the first process may start before the others do: they wait for its controller, but not for its recovery."""
OPEN_WITHIN_S: Final = 10.0
"""How long a process that serves waits for slower ones before clients may come in: topics that are created meanwhile lie on the
nodes that are there."""
STOP_S: Final = 330.0
"""How long a process may take to stop before it is killed: its leaderships move for at most five minutes, as in Kafka."""
DELAYS_S: Final = (0, 1, 2, 4, 8, 16, 30)
"""How long a process that has ended waits until it is started again; the longer the more often it ended."""
STEADY_S: Final = 60.0
"""A process that has served so long has not failed by its start."""

SPARE_S: Final = 600.0
"""How long a restart waits for replicas in sync, before it stops a process and after it serves again."""
ASK_S: Final = 0.2
"""How often it asks."""

Script = Generator[None, None, None]
"""Steps of a start or a stop; goes on at each tick."""


class Child:
    """One process, in all of its lives. Only the supervisor changes it."""

    def __init__(self, started: Started) -> None:
        self.node_id = started.node_id
        self.command = started.command
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.ready = False
        self.began = 0.0
        self.failures = 0
        self.due: float | None = None
        """When it is started again; None while it runs or is not wanted."""
        self.rest = b""
        self.restarting = False
        """Whether its end is part of a restart, and no failure."""
        self.spare: tuple[int, int] | None = None
        """What it last said of itself: partitions in whose ISR it is not, and those that cannot do without it."""

    def say(self, line: bytes) -> None:
        """Tells the process something; one that has ended hears nothing."""
        if self.control is not None:
            with contextlib.suppress(OSError):
                self.control.send(line + b"\n")

    def forget(self) -> None:
        """The process has ended."""
        if self.control is not None:
            self.control.close()
        self.process = self.control = None
        self.ready, self.rest = False, b""


class Supervisor:
    """Runs the processes of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._children = [Child(each) for each in plan.processes]
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._open = False
        self._stopping = False
        self._restart = False
        self._failed = False
        self._code: int | None = None
        self._console: ConsoleProcess | None = None

    def run(self) -> int:
        """Runs until a signal ends it, or the first start fails; returns the exit code."""
        for each in (self._wake, self._woken):
            each.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wake.fileno())
        for number in ending_signals():
            signal.signal(number, self._end)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.signal(signal.SIGUSR1, self._restart_all)
        script: Script | None = self._start()
        stopping = False
        while self._code is None:
            if self._stopping and not stopping:
                script, stopping = self._stop(), True
            elif self._restart and script is None:
                self._restart = False
                script = self._roll()
            script = self._go_on(script)
            if self._code is None:
                self._wait(script is not None or self._restart)
        return self._code

    def _go_on(self, script: Script | None) -> Script | None:
        """Looks at what has changed; the script, None when it is through."""
        self._reap()
        if not self._stopping:
            for child in self._children:
                if child.due is not None and time.monotonic() >= child.due:
                    self._launch(child)
        try:
            if script is not None:
                next(script)
        except StopIteration:
            return None
        return script

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._stopping = True

    def _restart_all(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._restart = True

    # Start, restart and stop

    def _start(self) -> Script:
        first, *others = self._children
        self._launch(first)
        limit = time.monotonic() + FIRST_ALONE_S
        while not first.ready and time.monotonic() < limit:
            yield
        for child in others:
            self._launch(child)
        limit = 0.0
        while not all(child.ready for child in self._children):
            if limit == 0.0 and any(child.ready for child in self._children):
                limit = time.monotonic() + OPEN_WITHIN_S
            if limit and time.monotonic() > limit:
                self._let_clients_in()
            yield
        self._let_clients_in()

    def _let_clients_in(self) -> None:
        if self._open:
            return
        self._open = True
        for child in self._children:
            if child.ready:
                child.say(OPEN)
        first, last = self._children[0].node_id, self._children[-1].node_id
        seconds = time.perf_counter() - self._plan.began
        with contextlib.suppress(OSError):
            print(
                f"tidelog is ready: {', '.join(self._plan.addresses)} ({len(self._children)} processes, nodes {first} to {last}, "
                f"started in {seconds:.2f} s)",
                flush=True,
            )
        if self._plan.console is not None:
            from tidelog.cli.console_process import ConsoleProcess  # it imports more than the supervisor otherwise needs

            self._console = ConsoleProcess(*self._plan.console, lambda line: log.warning("%s", line))
            self._console.start()

    def _roll(self) -> Script:
        """One process after the other, the first one last, so that the controller moves away and back once. Each reads the file
        with its settings again."""
        log.info("restarting the processes, one after another")
        for child in (*self._children[1:], self._children[0]):
            if not (yield from self._asked(child, lambda behind, needed: not needed)):
                log.error("node %d cannot be spared: %s; the restart ends here", child.node_id, _why(child))
                return
            if child.process is not None:
                child.restarting = True
                child.process.terminate()
            began, limit = child.began, time.monotonic() + STOP_S
            while child.restarting:
                if child.process is not None and time.monotonic() > limit:
                    log.error("node %d did not stop within %.0f s, and is killed", child.node_id, STOP_S)
                    child.process.kill()
                    limit = float("inf")
                yield
            failures = child.failures
            while not (child.ready and child.began > began):
                if child.failures > failures:
                    log.error("node %d does not start again; the restart ends here", child.node_id)
                    return
                yield
            if not (yield from self._asked(child, lambda behind, needed: not behind)):
                log.error("node %d is not in sync: %s; the restart ends here", child.node_id, _why(child))
                return
        log.info("all processes were restarted")

    def _asked(self, child: Child, enough: Callable[[int, int], bool]) -> Generator[None, None, bool]:
        """Asks the process until its answer is enough; False when that takes too long. True for one that does not run."""
        limit, ask = time.monotonic() + SPARE_S, 0.0
        child.spare = None
        while child.process is not None or child.due is not None:
            if child.spare is not None and enough(*child.spare):
                return True
            if time.monotonic() > limit:
                return False
            if child.ready and time.monotonic() > ask:
                ask = time.monotonic() + ASK_S
                child.say(SPARE)
            yield
        return True

    def _stop(self) -> Script:
        """The last process first: the first one has the controller, which the others need for their stop."""
        log.info("stopping")
        if self._console is not None:
            self._console.end()
        killed = 0
        for child in reversed(self._children):
            if child.process is None:
                continue
            child.process.terminate()
            limit = time.monotonic() + STOP_S
            while child.process is not None:
                if time.monotonic() > limit:
                    log.error("node %d did not stop within %.0f s, and is killed", child.node_id, STOP_S)
                    child.process.kill()
                    limit, killed = float("inf"), killed + 1
                yield
        if self._console is not None:
            self._console.wait()
        log.info("stopped")
        self._code = 1 if killed or self._failed else 0

    # Processes

    def _launch(self, child: Child) -> None:
        child.due = None
        ours, theirs = socket.socketpair()
        place = {
            "node_id": child.node_id,
            "first": child is self._children[0],
            "control": theirs.fileno(),
            "sockets": dict(self._plan.sockets),
            "http": self._plan.http,
            "folder": self._plan.pages,
            "node_ids": [each.node_id for each in self._children],
        }
        inherited = (theirs.fileno(), *self._plan.inherited())
        child.began = time.monotonic()
        try:
            # In a session of its own: Ctrl-C is for the supervisor, which stops one process after the other.
            child.process = subprocess.Popen(
                child.command,
                stdin=subprocess.DEVNULL,
                env={**os.environ, VARIABLE: json.dumps(place)},
                pass_fds=inherited,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._ended(child, f"cannot be started: {error.strerror}")
            return
        finally:
            theirs.close()
        ours.setblocking(False)
        child.control = ours
        with contextlib.suppress(OSError), open(f"{self._plan.folder}/{child.node_id}.pid", "w", encoding="ascii") as file:
            file.write(f"{child.process.pid}\n")
        self._selector.register(ours, selectors.EVENT_READ, child)

    def _reap(self) -> None:
        for child in self._children:
            if child.process is None or child.process.poll() is None:
                continue
            code = child.process.returncode
            how = f"was ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
            self._hear(child)  # what it said last
            if child.control is not None:
                self._selector.unregister(child.control)
            served = child.ready
            child.forget()
            self._ended(child, how, served=served)

    def _ended(self, child: Child, how: str, *, served: bool = False) -> None:
        if self._stopping:
            return
        if child.restarting:
            child.restarting, child.due = False, time.monotonic()
            return
        if not self._open and not served:
            # As a single node: what it cannot start with has to be changed first, and its last line says what.
            log.error("node %d %s; the start is given up", child.node_id, how)
            self._stopping = self._failed = True
            return
        if served and time.monotonic() - child.began >= STEADY_S:
            child.failures = 0
        delay = DELAYS_S[min(child.failures, len(DELAYS_S) - 1)]
        child.failures += 1
        child.due = time.monotonic() + delay
        when = f"in {delay} s" if delay else "now"
        log.error("node %d %s; it is started again %s", child.node_id, how, when)

    # Events

    def _wait(self, busy: bool) -> None:
        """Until something happens, or a time may have come."""
        timed = busy or any(child.due is not None for child in self._children)
        for key, _ in self._selector.select(TICK_S if timed else None):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            else:
                self._hear(key.data)

    def _hear(self, child: Child) -> None:
        if child.control is None:
            return
        try:
            data = child.control.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            # The process closes it early while it stops; its end is noticed by itself.
            self._selector.unregister(child.control)
            child.control.close()
            child.control = None
            return
        *lines, child.rest = (child.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(SPARE):
                behind, needed = line.split()[1:]
                child.spare = int(behind), int(needed)
        if READY in lines:
            child.ready = True
            if self._open:
                child.say(OPEN)
                log.info("node %d serves again", child.node_id)


def _why(child: Child) -> str:
    if child.spare is None:
        return "it does not answer"
    behind, needed = child.spare
    return f"{needed} partition(s) would have too few replicas in sync, in {behind} it lacks itself"


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler, so that the signal wakes the supervisor."""
    del number, frame


def main() -> None:
    """Reads the plan from the descriptor that the only argument names, and runs it."""
    with os.fdopen(int(sys.argv[1]), encoding="utf-8") as file:
        plan = Plan.from_json(file.read())
    logging_setup.set_up(plan.log_level, plan.log_format)
    sys.exit(Supervisor(plan).run())


if __name__ == "__main__":
    main()
