"""Every fact of a node's JSON page, ``/facts``: where it stands, what it is, and whether it names a topic or a client.

A path is that of the value in the page; ``[]`` stands for the entries of a list. A section that could not be read is null, and so
is what the operating system does not tell. ``names`` marks texts that come from users of the cluster: they are null for a reader
who may not see them (docs/internals/facts.md).

``SCHEMA`` is raised when a fact goes or changes its meaning. New facts do not raise it: a reader ignores what it does not know.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

SCHEMA: Final = 1
TOP: Final = 50
"""The most entries of a list of busiest ones."""
LONGEST_TEXT: Final = 256
"""The most characters of a text."""


class Kind(StrEnum):
    """What a value is in JSON."""

    OBJECT = "object"
    LIST = "list"
    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    TRUTH = "true or false"


class Fact(NamedTuple):
    """One row."""

    path: str
    kind: Kind
    doc: str
    names: bool = False


def _section(path: str, doc: str) -> Fact:
    return Fact(path, Kind.OBJECT, doc)


def _list(path: str, doc: str) -> Fact:
    return Fact(path, Kind.LIST, doc)


def _text(path: str, doc: str, *, names: bool = False) -> Fact:
    return Fact(path, Kind.TEXT, doc, names)


def _whole(path: str, doc: str) -> Fact:
    return Fact(path, Kind.WHOLE, doc)


def _number(path: str, doc: str) -> Fact:
    return Fact(path, Kind.NUMBER, doc)


_SECONDS = "The time that the numbers beside it cover: between the page and an earlier one that is at least five seconds older."

FACTS: Final[tuple[Fact, ...]] = (
    _whole("schema", f"{SCHEMA}. Another number means that facts are gone or mean something else."),
    _whole("at_ms", "When the page was made, in ms since 1970."),
    Fact("names", Kind.TRUTH, "Whether the reader may see names of topics, clients and principals; otherwise they are null."),
    _section("node", "The node."),
    _whole("node.id", "Its number."),
    _text("node.version", "The version of tidelog."),
    _text("node.cluster_id", "The id of its cluster."),
    _list("node.roles", "What it is: broker, controller or both."),
    _text("node.roles[]", "One of them."),
    _number("node.uptime_seconds", "How long it has been ready."),
    _section("process", "The process, as the operating system sees it."),
    _whole("process.memory_bytes", "Resident memory."),
    _number("process.cpu_seconds", "CPU time of all threads since the start, user and system."),
    _whole("process.open_files", "Open descriptors."),
    _whole("process.open_files_limit", "How many it may have."),
    _section("loop", "The event loop, on which all requests run."),
    _number("loop.seconds", _SECONDS),
    _number("loop.busy", "Share of that time, 0 to 1, in which the loop's thread used a CPU."),
    _list("loop.apis", "Each API that was asked, and an empty name for logins and refused requests, the largest share first."),
    _text("loop.apis[].api", "Its name."),
    _whole("loop.apis[].requests", "Requests that were read."),
    _number(
        "loop.apis[].share",
        "Share of the time, 0 to 1, that the loop worked for its requests: reading, handling and sending. The shares do not add "
        "up to loop.busy: the loop has other work, and a piece of work that is interrupted counts in full.",
    ),
    _list("requests", "Each API that was timed, and Fetch of consumers and of followers apart."),
    _text("requests[].api", "Its name, as in the label request of the metrics."),
    _whole("requests[].count", "Requests since the start, nearly: most are sampled."),
    _list("requests[].phases", "The phases of docs/internals/metrics.md, over the last one to two minutes."),
    _text("requests[].phases[].phase", "total, request queue, local, remote, throttle, response queue or response send."),
    _number("requests[].phases[].p50_ms", "Half of the requests took no longer."),
    _number("requests[].phases[].p99_ms", "99 of 100 took no longer."),
    _number("requests[].phases[].p999_ms", "999 of 1000 took no longer."),
    _section("clients", "Who asks: clients by client id, principal and host, those of all listeners."),
    _number("clients.seconds", _SECONDS),
    _number("clients.share_error", "How much larger a share in the list may be than the true one; 0 while few clients ask."),
    _list("clients.busiest", f"The {TOP} clients for which the loop worked most, the busiest first."),
    _text("clients.busiest[].client_id", "The client id, cut to 128 characters.", names=True),
    _text("clients.busiest[].principal", "The principal, such as User:alice, cut to 128 characters.", names=True),
    _text("clients.busiest[].host", "The address, without a port.", names=True),
    _number("clients.busiest[].share", "Share of the time, 0 to 1, that the loop worked for it."),
    _whole("clients.busiest[].requests", "Its requests; too few by what came before it got into the sketch."),
    _whole("clients.busiest[].bytes_in", "Bytes that it sent, headers included."),
    _whole("clients.busiest[].bytes_out", "Bytes that it was sent."),
    _section("topics", "Topics with replicas here."),
    _number("topics.seconds", _SECONDS),
    _whole("topics.count", "How many there are."),
    _list("topics.busiest", f"The {TOP} with the most bytes in and out, those without any left out."),
    _text("topics.busiest[].topic", "The name.", names=True),
    _whole("topics.busiest[].records_in", "Records that producers wrote here."),
    _whole("topics.busiest[].bytes_in", "Bytes of batches that producers wrote here."),
    _whole("topics.busiest[].bytes_out", "Bytes of batches that consumers read here."),
    _whole("topics.busiest[].replication_bytes", "Bytes of batches that were copied from or to other brokers."),
    _whole("topics.busiest[].requests", "Produce and Fetch requests, counted per partition that they name."),
    _section("partitions", "Partitions with a replica here."),
    _number("partitions.seconds", _SECONDS),
    _whole("partitions.count", "How many there are."),
    _whole("partitions.leaders", "Those that this node leads."),
    _whole("partitions.offline", "Those whose log dir has failed."),
    _whole("partitions.under_replicated", "Those led here with replicas out of sync."),
    _whole("partitions.under_min_isr", "Those led here with fewer replicas in sync than min.insync.replicas."),
    _whole("partitions.held_by_transactions", "Those led here where a transaction keeps readers of committed records back."),
    _list("partitions.busiest", f"The {TOP} that got the most records, those without any left out."),
    _text("partitions.busiest[].topic", "The topic.", names=True),
    _whole("partitions.busiest[].partition", "The number of the partition."),
    _whole("partitions.busiest[].records_in", "Records that were appended, by producers or from the leader."),
    _section("connections", "Connections of clients and other nodes."),
    _whole("connections.open", "How many are open."),
    _list("connections.listeners", "Each listener."),
    _text("connections.listeners[].listener", "Its name."),
    _whole("connections.listeners[].refused", "Connections that were refused since the start, by a limit."),
    _section("connections.listeners[].states", "How many are in which state."),
    _whole("connections.listeners[].states.authenticating", "Not logged in yet."),
    _whole("connections.listeners[].states.idle", "No request is in flight."),
    _whole("connections.listeners[].states.busy", "A request is parked or at work, or an answer is being sent."),
    _whole("connections.listeners[].states.throttled", "Over a quota, and not read until the throttle time has passed."),
    _whole("connections.listeners[].states.draining", "About to be closed."),
    _list("parked", "Requests that wait in the purgatory."),
    _text("parked[].api", "Produce (for followers), Fetch (for records) or DeleteRecords."),
    _whole("parked[].requests", "How many."),
    _whole("parked[].watched", "Partitions and fetch sessions that they watch, counted once for each request."),
    _list("groups", "Groups whose coordinator is this node, by protocol and state."),
    _text("groups[].type", "classic or consumer."),
    _text("groups[].state", "The state, as Kafka's tools name it."),
    _whole("groups[].count", "How many."),
    _whole("groups[].members", "Their members."),
    _section("transactions", "Transactions whose coordinator is this node."),
    _whole("transactions.ids", "Transactional ids that are known."),
    _whole("transactions.open", "Those with a transaction that is open or being completed."),
    _number("transactions.oldest_seconds", "The age of the oldest one of these; 0 without one."),
    _whole("transactions.missing_markers", "Partitions without the marker of a transaction that was decided."),
    _section("quorum", "This node's part in the metadata quorum."),
    _text("quorum.role", "Its role: unattached, prospective, candidate, leader, follower or resigned."),
    _whole("quorum.leader", "The number of the leader, -1 while unknown."),
    _whole("quorum.epoch", "The epoch."),
    _whole("quorum.high_watermark", "The end of what is committed, -1 while unknown."),
)  # fmt: skip
"""All facts, in the order of the page. A node that is only a controller has no topics, partitions, groups and transactions."""

BY_PATH: Final = {fact.path: fact for fact in FACTS}
