"""What is audited: decisions of the authorizer and logins, as lines in the queues of the places that keep them.

Always written: changes, successful logins. Denials and failed logins: at most ``per_second`` of each in a second. Sampled: reads
that were allowed, written records, and what nodes do among themselves (``SAMPLED``). What is left out is counted, and the counts
are events themselves, once a minute. The node's own produces to its audit topic are no events, or each would cause the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tidelog.broker.audit import events
from tidelog.broker.audit.events import Kind
from tidelog.broker.audit.line_queue import LineQueue
from tidelog.broker.audit.sampling import LEFT_OUT, PerSecond, Sampling
from tidelog.broker.audit.targets import targets
from tidelog.broker.ports import Client
from tidelog.broker.request import Session
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.authorizer import Decision, Rule

SAMPLED = frozenset(
    {
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.WRITE,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.CLUSTER_ACTION,
    }
)
"""The operations of which not every allowed one is written."""


class AuditSettings(NamedTuple):
    """What is written. ``topic``: the audit topic, empty without one."""

    sample_interval_ms: int
    per_second: int
    topic: str = ""


class LeftOut(NamedTuple):
    """How many events were not written since the start, by reason."""

    reads: int
    denials: int
    failed_logins: int
    dropped: int
    """Events for which a queue had no room, because its place could not be written."""


class AuditLog:
    """Implements ``broker.access_control.Audit`` and ``broker.authentication.LoginAudit``. Not shared between threads."""

    def __init__(
        self,
        node_id: int,
        settings: AuditSettings,
        queues: Sequence[LineQueue],
        *,
        now_ms: Callable[[], int],
        even_ms: Callable[[], int],
    ) -> None:
        """``now_ms``: the wall clock, for the time in an event; ``even_ms``: the even clock, for rates and intervals."""
        self.written = 0
        """Events that were passed on to the queues."""
        self._node_id = node_id
        self._queues = queues
        self._own_topic = settings.topic
        self._now_ms = now_ms
        self._even_ms = even_ms
        self._began_ms = now_ms()
        self._reads: Sampling[Kind] = Sampling(settings.sample_interval_ms, PerSecond(settings.per_second))
        self._denials = PerSecond(settings.per_second)
        self._failed_logins = PerSecond(settings.per_second)
        self._told = self.left_out

    @property
    def left_out(self) -> LeftOut:
        """What was not written since the start."""
        dropped = sum(queue.dropped for queue in self._queues)
        return LeftOut(self._reads.left_out, self._denials.left_out, self._failed_logins.left_out, dropped)

    # -- decisions --------------------------------------------------------------------------------------------------------

    def allowed(
        self, client: Client, operation: int, resource_type: int, name: str, decision: Decision, request: object = None
    ) -> None:
        """The client does the operation on the resource."""
        before = 0
        if operation in SAMPLED:
            if name == self._own_topic and self._is_own(client, operation, resource_type, decision):
                return
            # Names of a client's choice are long, and many are remembered; an event shows no more of them either.
            shown = name[: events.LONGEST_TEXT]
            kind = Kind(client.principal, client.peer_host, client.api_key, operation, resource_type, shown)
            before = self._reads.take(kind, self._even_ms())
            if before == LEFT_OUT:
                return
        event = events.decision(client, operation, resource_type, name, decision, targets(request))
        if before:
            event["leftOut"] = before
        self._write(event)

    def denied(
        self,
        client: Client,
        operation: int,
        resource_type: int,
        name: str,
        decision: Decision,
        request: object = None,
        *,
        dry_run: bool,
    ) -> None:
        """The client was refused, or would have been but for a dry run."""
        if self._denials.takes(self._even_ms()):
            event = events.decision(client, operation, resource_type, name, decision, targets(request))
            self._write(event | {"dryRun": True} if dry_run else event)

    def _is_own(self, client: Client, operation: int, resource_type: int, decision: Decision) -> bool:
        """Whether another node writes events to the audit topic here; nodes are super users."""
        return (
            client.api_key == ApiKey.PRODUCE
            and operation == AclOperation.WRITE
            and resource_type == ResourceType.TOPIC
            and decision.rule is Rule.SUPER_USER
        )

    # -- logins -----------------------------------------------------------------------------------------------------------

    def logged_in(self, session: Session, mechanism: str, again: bool) -> None:
        """A client has authenticated."""
        self._write(events.login(str(session.principal), session.peer_host, session.listener, mechanism, again=again))

    def login_failed(self, listener: str, host: str, mechanism: str, reason: str) -> None:
        """A client has not authenticated, and is disconnected."""
        if self._failed_logins.takes(self._even_ms()):
            self._write(events.failed_login(host, listener, mechanism, reason))

    # -- counts -----------------------------------------------------------------------------------------------------------

    def minute(self) -> None:
        """Writes what was left out since the last call: reads by kind once their interval is over, the rest as numbers."""
        for kind, count in self._reads.forget(self._even_ms()):
            self._write(events.repeated(kind, count))
        now = self.left_out
        before, self._told = self._told, now
        counts = {name: later - earlier for name, later, earlier in zip(LeftOut._fields, now, before, strict=True)}
        if any(counts.values()):
            names = {"failed_logins": "failedLogins"}
            self._write({"type": events.LEFT_OUT} | {names.get(name, name): count for name, count in counts.items()})

    def _write(self, event: Mapping[str, Any]) -> None:
        self.written += 1
        written = events.line(event, f"{self._node_id}-{self._began_ms}-{self.written}", self._node_id, self._now_ms())
        for queue in self._queues:
            queue.add(written)
