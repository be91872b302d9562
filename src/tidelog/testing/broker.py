"""``Broker``: a real broker for a test, in a thread of the test's process or in a separate process.

The node is complete: protocol, log, metadata log, groups, on a real port. Only its disk is in memory unless a folder is given,
and faults can be planned for its APIs. ``local`` does the work in this process, ``child`` in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from tidelog.testing.access import Access
from tidelog.testing.clock import Clock
from tidelog.testing.faults import Faults
from tidelog.testing.group_settings import Alter, GroupSettings
from tidelog.testing.local import LocalBroker
from tidelog.testing.records import Message, Text

if TYPE_CHECKING:
    from tidelog.testing.certificates import Certificates
    from tidelog.testing.child import ChildBroker, ChildFaults
    from tidelog.testing.permissions import Rule
    from tidelog.testing.users import Users


class Broker:
    """A broker on a free port of 127.0.0.1, for a ``with`` block or between ``start`` and ``stop``. Since 0.1.

    ``data``: a folder to keep the data in, None for memory. ``port``: 0 for a free one. ``config``: settings under Kafka's names;
    ConfigError for one that does not exist. ``process``: run in a process of its own, which ``kill`` can end. ``clock``: one that
    several brokers share, or that begins at another time; only without ``process``. ``users``: passwords by name; clients then
    log in by SCRAM or PLAIN (``access.client_settings``). ``acls``: what clients may do, made by ``allow`` and ``deny``; None:
    everything. ``tls``: the listener speaks TLS, with a certificate of an authority made for this broker; with ``"mutual"``
    clients show a certificate, too. It needs ``pip install 'tidelog[tls]'``, else ConfigError.

    Every method may be called from any thread. RuntimeError when the broker does not run, TimeoutError when it does not answer
    within 30 s; with ``process`` a ChildFailed, which has the end of the log, when the process has died.
    """

    def __init__(
        self,
        *,
        data: str | PathLike[str] | None = None,
        port: int = 0,
        config: Mapping[str, str | int] | None = None,
        process: bool = False,
        clock: Clock | None = None,
        users: Mapping[str, str] | None = None,
        acls: Sequence[Rule] | None = None,
        tls: bool | Literal["mutual"] = False,
    ) -> None:
        if process and clock is not None:
            raise ValueError("a clock cannot be shared with another process; use advance() on each broker")
        if tls not in (False, True, "mutual"):
            raise ValueError(f'tls is {tls!r}, but must be True, False or "mutual"')
        if users is not None and not isinstance(users, Mapping):
            raise TypeError(
                f'users is a {type(users).__name__}, but must be a dict of passwords by name: users={{"alice": "secret"}}'
            )
        certificates: Certificates | None = None
        if tls:
            from tidelog.testing.certificates import Certificates  # ssl and cryptography: most tests need none of them.

            certificates = Certificates(mutual=tls == "mutual")
        users_of: Users | None = None
        if users or acls is not None or tls:
            from tidelog.testing.users import Users  # The authorizer and SCRAM: most tests need none of them.

            users_of = Users(users or {}, acls, certificates)
        self._host: ChildBroker | LocalBroker
        if process:
            from tidelog.testing.child import ChildBroker  # pickle, tempfile and pathlib: most tests need none of them.

            self._host = child = ChildBroker(data, port, config, users_of)
            replace: Callable[[Sequence[Rule]], None] = partial(child.ask, "set_acls")
            alter: Alter = partial(child.ask, "configure_group")
        else:
            self._host = local = LocalBroker(data, port, config, clock, users_of)
            replace = local.set_acls
            alter = local.configure_group
        self.access = Access(users_of, certificates, lambda: self.bootstrap_servers, replace)
        """How clients log in, and what they may do."""
        self.group_settings = GroupSettings(alter)
        """What groups have of their own: ``group_settings.set("workers", share_auto_offset_reset="earliest")``."""

    def __repr__(self) -> str:
        return f"<Broker {self._host.where}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    # -- life ----------------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start; returns when clients are served. Raises the node's own error when it cannot start, ChildFailed for another
        process."""
        self._host.start()
        return self

    def stop(self) -> None:
        """Stop cleanly, as by SIGTERM. ``start`` continues with the data in the folder, or in this ``Broker``'s memory."""
        self._host.stop()

    def restart(self) -> Self:
        """Stop if it runs, and start on the same port with the remaining data."""
        self._host.restart()
        return self

    def kill(self) -> None:
        """End its process as ``kill -9`` does; nothing is flushed. RuntimeError unless it is ``Broker(process=True)``."""
        self._host.kill()

    # -- where it is ---------------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._host.port

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, for a client's ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of its own process. RuntimeError unless it is ``Broker(process=True)``."""
        if isinstance(self._host, LocalBroker):
            raise RuntimeError("the broker runs in the test's own process; ask for Broker(process=True)")
        return self._host.pid

    @property
    def log(self) -> str:
        """What its own process has logged since the last start. RuntimeError unless it is ``Broker(process=True)``."""
        if isinstance(self._host, LocalBroker):
            raise RuntimeError("the broker logs into the test's own process; ask for Broker(process=True)")
        return self._host.log

    @property
    def faults(self) -> Faults | ChildFaults:
        """The faults that are planned: see ``Faults``."""
        return self._host.faults

    @property
    def clock(self) -> Clock:
        """The broker's clock. RuntimeError for ``Broker(process=True)``, whose clock is in its process: use ``advance``."""
        if not isinstance(self._host, LocalBroker):
            raise RuntimeError("the clock is in the broker's process; use advance()")
        return self._host.clock

    # -- topics and records --------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1, **config: str | int) -> None:
        """Create a topic; settings with ``_`` for ``.``, as in ``cleanup_policy="compact"``.

        ValueError with the reason when it is refused. A single broker refuses more than one replica, as a cluster of one node
        does.
        """
        self._host.create_topic(name, partitions, replicas, config)

    @property
    def topics(self) -> list[str]:
        """The topics, without Kafka's internal ones, sorted by name."""
        return self._host.topics

    def produce(self, topic: str, *values: Text | tuple[Text, Text] | Message, partition: int = 0) -> None:
        """Append values, (key, value) pairs or Messages as one batch; a missing topic is created.

        ValueError when the broker refuses them, TypeError for values that are not str, bytes, None, pairs or Messages.
        """
        self._host.produce(topic, *values, partition=partition)

    def messages(self, topic: str, partition: int | None = None, *, committed: bool = False) -> list[Message]:
        """The records up to the high watermark, partition by partition, as a ``read_uncommitted`` consumer gets them.

        With ``committed`` they are those of ``isolation.level=read_committed``: no records of aborted transactions, and none
        at or after the first record of a transaction that is still open. ValueError when there is no such topic or partition.
        """
        return self._host.messages(topic, partition, committed)

    # -- time and groups -----------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Move the broker's time forward at once: sessions end, records and offsets expire, waiting requests are answered.

        The clients' clocks do not move. Returns when everything that fell due is done.
        """
        self._host.advance(seconds)

    def groups(self) -> list[str]:
        """The ids of groups with members and of groups with committed offsets only, sorted."""
        return self._host.groups()

    def committed_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """(topic, partition) to the offset that the group has committed. ValueError when there is no such group."""
        return self._host.committed_offsets(group)

    def expire_member(self, group: str, member_id: str | None = None) -> list[str]:
        """End the session of a member, or of all, as if it had timed out; returns their ids. ValueError when there is none."""
        return self._host.expire_member(group, member_id)

    def reload_coordinators(self) -> None:
        """Make the coordinators of groups and transactions forget their state and read their logs again.

        That is what a client sees when another broker takes over from a dead one.
        """
        self._host.reload_coordinators()

    # -- between tests -------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Delete all topics, groups with their settings and planned faults, and set the ACLs back. Clients may stay connected.

        After ``fill_disk`` a broker in memory restarts empty on its port.
        """
        self._host.reset()

    def fill_disk(self, full: bool = True) -> None:
        """Make every write fail as on a full disk, until ``fill_disk(False)``.

        The first failed write takes the log dir offline, as in Kafka, until ``restart()`` or ``reset()``. RuntimeError for a
        broker with a folder.
        """
        self._host.fill_disk(full)
