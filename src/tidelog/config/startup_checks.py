"""May a node start with these settings: what one option alone cannot tell.

Every problem is a sentence that names the setting, what it is, and what would do. Security that would not be enforced is a
problem, never a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.broker_security import SERVED_PROTOCOLS, TLS_PROTOCOLS
from tidelog.config.listener_connections import bounds_problems
from tidelog.config.listener_proxy import proxy_networks
from tidelog.config.listeners import check_advertised, check_listeners
from tidelog.config.options import Option
from tidelog.config.tidelog_options import HTTP_SECURITY
from tidelog.config.unknown_settings import explain_unknown
from tidelog.config.values import NodeValues
from tidelog.model.errors import ConfigError
from tidelog.model.ids import INTERNAL_TOPICS

_ORDERED: Final = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ("group.share.min.session.timeout.ms", "group.share.session.timeout.ms"),
    ("group.share.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    ("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ("group.share.min.delivery.count.limit", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ("group.share.min.partition.max.record.locks", "group.share.partition.max.record.locks"),
    ("group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
    ("group.streams.min.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms"),
    ("group.streams.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"),
    ("group.streams.min.session.timeout.ms", "group.streams.session.timeout.ms"),
    ("group.streams.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms"),
    ("group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ("group.share.min.assignment.interval.ms", "group.share.assignment.interval.ms"),
    ("group.share.assignment.interval.ms", "group.share.max.assignment.interval.ms"),
    ("group.streams.min.assignment.interval.ms", "group.streams.assignment.interval.ms"),
    ("group.streams.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
    ("broker.heartbeat.interval.ms", "broker.session.timeout.ms"),
)
"""Pairs of which the first may not be greater than the second."""

LEAST_CLEANER_BYTES: Final = 1 << 20
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTORS: Final = ("org.apache.kafka.common.replica.LeaderSelector", RACK_AWARE_SELECTOR)
"""Kafka's own, which are known here by their names."""

_FIXED_WHILE_RUNNING: Final = (
    "config.providers",
    "listeners",
    "listener.security.protocol.map",
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
)
"""What Kafka can change while it runs and tidelog cannot: a change that is not made must not look as if it were, since the
new map may be the one that closes a listener to strangers."""


def start_problems(config: NodeValues, given: Mapping[str, str]) -> list[str]:
    """All that stops a node with these settings; empty when it may start. ``given`` is what the file and the flags said."""
    return [
        *_unknown_own(given),
        *_refused(given),
        *_identity(config),
        *_roles_and_quorum(config),
        *_listeners(config, given),
        *bounds_problems(given),
        *_authorizer(config, given),
        *_audit(config),
        *_http_endpoint(config, given),
        *_ordered(config),
        *_bounds(config),
        *_rolling(config),
        *_cleaner(config),
    ]


def change_problems(before: NodeValues, after: NodeValues) -> list[str]:
    """What a client is refused in a change from the values ``before`` to those ``after``, and what a node takes over all the same
    once it is stored: an older version may have stored it, or a broker with another file. An old mistake stops no other
    change."""
    old = {*_rolling(before), *_cleaner(before)}
    return [each for each in (*_rolling(after), *_cleaner(after)) if each not in old] + list(_local_retention(before, after))


def dynamic_problems(before: NodeValues, after: NodeValues, given: Mapping[str, str]) -> list[str]:
    """All that keeps a node from taking over dynamic settings while it runs, from the values ``before`` to those ``after``;
    ``given`` is what the dynamic layers say."""
    fixed = [
        f"{name} cannot be changed while the node runs. Set it in server.properties and restart."
        for name in _FIXED_WHILE_RUNNING
        if name in given and getattr(after, BROKER_OPTIONS[name].attribute) != getattr(before, BROKER_OPTIONS[name].attribute)
    ]
    return [
        *fixed,
        *_refused(given),
        *bounds_problems(given),
        *_ordered(after),
        *_bounds(after),
    ]


def _unknown_own(given: Mapping[str, str]) -> Iterator[str]:
    for name in given:
        if name not in BROKER_OPTIONS:
            try:
                explain_unknown(name)
            except ConfigError as error:
                yield str(error)


def _refused(given: Mapping[str, str]) -> Iterator[str]:
    for name, text in given.items():
        option = BROKER_OPTIONS.get(name)
        if option is not None and option.refuses is not None and _says_something(option, text):
            yield f"{name} is set, but {option.refuses}. Remove it to start without."


def _says_something(option: Option, text: str) -> bool:
    return bool(text.strip()) and option.parse(text) != option.default


def _identity(config: NodeValues) -> Iterator[str]:
    if config.node_id is None:
        yield "node.id is not set. Give each node of a cluster a number of its own, from 0."
    elif config.broker_id not in (config.node_id, -1):
        yield f"node.id is {config.node_id} and broker.id is {config.broker_id}; they mean the same, so give one, or both equal."


def _roles_and_quorum(config: NodeValues) -> Iterator[str]:
    if not config.controller_listener_names:
        yield "controller.listener.names is not set. Name the controller's listener, such as CONTROLLER."
    named = config.node_id in {voter.id for voter in config.voters}
    if config.is_controller and config.voters and not named:
        yield f"controller.quorum.voters does not name this node, {config.node_id}."
    if not config.is_controller:
        if named:
            yield (
                f"controller.quorum.voters names this node, {config.node_id}, but process.roles is broker. Add the role "
                "controller, or give the broker a number of its own."
            )
        if not config.voters and not config.controller_quorum_bootstrap_servers:
            yield (
                "process.roles is broker, and nothing says where the controllers are. Set controller.quorum.bootstrap.servers "
                "(all of them, host:port), or controller.quorum.voters for a quorum with a fixed set of voters."
            )


def _listeners(config: NodeValues, given: Mapping[str, str]) -> Iterator[str]:
    yield from check_listeners(config.endpoints, SERVED_PROTOCOLS)
    yield from check_advertised(config.advertised_endpoints)
    names = {point.listener for point in config.endpoints}
    controllers = {name.upper() for name in config.controller_listener_names}
    if config.is_broker and not config.broker_endpoints:
        yield "listeners holds no listener for clients; all are in controller.listener.names."
    if not config.embedded and config.is_controller and not controllers & names:
        yield (
            f"controller.listener.names is {','.join(sorted(controllers))}, of which listeners holds none. "
            "Add CONTROLLER://:9093 to listeners."
        )
    if not config.is_controller and controllers & names:
        yield (
            f"listeners holds {','.join(sorted(controllers & names))}, which is among controller.listener.names, but "
            "process.roles is broker. Remove it from listeners, or add the role controller."
        )
    for point in config.advertised_endpoints:
        if point.listener not in names:
            yield f"advertised.listeners names {point.listener}, which is not in listeners."
    if config.is_broker and config.advertised_endpoints and not {p.listener for p in config.advertised_endpoints} - controllers:
        yield "advertised.listeners holds no listener for clients."
    inter = config.inter_broker_listener_name
    if inter is not None and "security.inter.broker.protocol" in given:
        yield "inter.broker.listener.name and security.inter.broker.protocol are both set. Set one of them."
    if inter is not None and config.is_broker and inter.upper() not in names - controllers:
        clients = ", ".join(sorted(names - controllers))
        yield f"inter.broker.listener.name is {inter}, which is not among the listeners for clients ({clients})."
    if (protocol := config.security_inter_broker_protocol) not in SERVED_PROTOCOLS:
        served = " or ".join(sorted(SERVED_PROTOCOLS))
        yield f"security.inter.broker.protocol is {protocol}, which does not exist. Set {served}."
    yield from _secured(config, given)


def _secured(config: NodeValues, given: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the settings of listeners, and for connections to listeners that only other nodes have."""
    own = {point.listener for point in config.endpoints}
    protocols = config.protocol_map
    others = [] if config.embedded else [name for name in map(str.upper, config.controller_listener_names[:1]) if name not in own]
    for name in (*(point.listener for point in config.endpoints), *others):
        protocol = protocols.get(name, "PLAINTEXT")
        questions: list[Callable[[], object]] = [partial(proxy_networks, given, name)] if name in own else []
        if protocol.startswith("SASL_") and name in own:
            from tidelog.config.listener_sasl import sasl_settings  # Only for a node that has such a listener.

            questions.append(partial(sasl_settings, given, name))
        if protocol in TLS_PROTOCOLS:
            from tidelog.config.listener_tls import serving_tls, tls_settings

            questions.append(partial(serving_tls if name in own else tls_settings, given, name, protocol))
        for question in questions:
            try:
                question()
            except ConfigError as problem:
                yield str(problem)


def _authorizer(config: NodeValues, given: Mapping[str, str]) -> Iterator[str]:
    if config.tidelog_authorizer_dry_run and not given.get("authorizer.class.name"):
        yield "tidelog.authorizer.dry.run is true, but authorizer.class.name is not set. A dry run tries an authorizer: set both."
    if given.get("authorizer.class.name"):
        from tidelog.config.authorizer import authorizer_settings  # Only for a node that has one.

        try:
            authorizer_settings(given)
        except ConfigError as problem:
            yield str(problem)


def _audit(config: NodeValues) -> Iterator[str]:
    topic = config.tidelog_audit_topic
    if topic and not config.is_broker:
        yield (
            f"tidelog.audit.topic is {topic}, but a node that is only a controller writes no topics. Set tidelog.audit.file on "
            "it, which has the changes that brokers pass on to the controller."
        )
    if topic and (not _TOPIC.fullmatch(topic) or topic in (".", "..") or topic in INTERNAL_TOPICS):
        yield f"tidelog.audit.topic is {topic}, which cannot be a topic of its own. Set a name such as __audit."


def _http_endpoint(config: NodeValues, given: Mapping[str, str]) -> Iterator[str]:
    if any(name.startswith(HTTP_SECURITY) for name in given):
        from tidelog.config.http_endpoint import endpoint_security  # Only for a node that secures it.

        try:
            endpoint_security(config)
        except ConfigError as problem:
            yield str(problem)


def _ordered(config: NodeValues) -> Iterator[str]:
    for low, high in _ORDERED:
        smaller, greater = (getattr(config, BROKER_OPTIONS[name].attribute) for name in (low, high))
        if smaller > greater:
            yield f"{low} is {smaller}, but must not be greater than {high}, which is {greater}."


def _local_retention(before: NodeValues, after: NodeValues) -> Iterator[str]:
    """Tiered topics keep no more on local disk than at all. Asked only when one of the two changes, as in Kafka."""
    for what in ("ms", "bytes"):
        name, whole = f"log.local.retention.{what}", f"log.retention.{what}"
        local, total = (getattr(after, BROKER_OPTIONS[each].attribute) for each in (name, whole))
        if (local, total) == tuple(getattr(before, BROKER_OPTIONS[each].attribute) for each in (name, whole)):
            continue
        if total >= 0 and local != -2 and not 0 <= local <= total:
            yield f"{name} is {local}, but must be from 0 to {whole}, which is {total}, or -2 for the same."


def _cleaner(config: NodeValues) -> Iterator[str]:
    threads, memory = config.log_cleaner_threads, config.log_cleaner_dedupe_buffer_size
    if threads < 1:
        yield f"log.cleaner.threads is {threads}, but must be at least 1. log.cleaner.enable=false switches compaction off."
    elif memory // threads <= LEAST_CLEANER_BYTES:
        yield (
            f"log.cleaner.dedupe.buffer.size is {memory}, but must be more than {LEAST_CLEANER_BYTES} for each of "
            f"log.cleaner.threads, which is {threads}."
        )


def _rolling(config: NodeValues) -> Iterator[str]:
    if config.log_roll_ms < 1:
        yield f"log.roll.ms is {config.log_roll_ms}, but must be at least 1."
    if config.log_roll_jitter_ms < 0:
        yield f"log.roll.jitter.ms is {config.log_roll_jitter_ms}, but must be at least 0."


def _bounds(config: NodeValues) -> Iterator[str]:
    if config.log_retention_ms == 0 or config.log_retention_ms < -1:
        yield f"log.retention.ms is {config.log_retention_ms}, but must be -1 (for ever) or at least 1."
    for name, value in (
        ("socket.send.buffer.bytes", config.socket_send_buffer_bytes),
        ("socket.receive.buffer.bytes", config.socket_receive_buffer_bytes),
    ):
        if value < -1 or value == 0:
            yield f"{name} is {value}, but must be -1 (the operating system's) or at least 1."
    if config.embedded and config.default_replication_factor > 1:
        yield (
            f"default.replication.factor is {config.default_replication_factor}, but a node without process.roles is alone, "
            "so no topic could be created. Set 1."
        )
    if config.replica_selector_class not in (None, *REPLICA_SELECTORS):
        yield (
            f"replica.selector.class is {config.replica_selector_class}, but Java classes are not run. "
            f"Set {' or '.join(REPLICA_SELECTORS)}."
        )
    if not config.log_dirs:
        yield "log.dirs is empty. Name at least one directory."
