"""Changes of a broker's dynamic settings, and what Apache Kafka 4.3.1 answers to them (KIP-226); 4.4.0 for what is new in it.

``python -m tests.dynamic_configs --write`` records the answers in ``golden/config/dynamic.jsonl`` (needs Java); without the
flag it compares a running tidelog with them. Every change is only validated, so that none is in the way of the next.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

GOLDEN = Path(__file__).parent / "golden" / "config"
RECORDED = GOLDEN / "dynamic.jsonl"
BROKER, CLUSTER = "1", ""
"""Resource names: the broker that the request is sent to, and all brokers."""
SET, DELETE, APPEND, SUBTRACT = range(4)
NEW_IN_4_4 = frozenset(
    {
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.copy.record.enable",
        "errors.deadletterqueue.group.enable",
        "errors.deadletterqueue.topic.name",
        "errors.deadletterqueue.topic.name.prefix",
        "group.share.dlq.manager.class.name",
    }
)
"""Settings that Apache Kafka 4.3 does not have."""
NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "data",
}
"""The settings of a node that matter here; the recorded one had other ports and another path."""

_NUMBERS = ("", " 3 ", "x", "1.5", "-2", "-1", "0", "1", "2", "2147483647", "2147483648", "9223372036854775808")
_OF_TYPE = {
    "BOOLEAN": ("true", "FALSE", "", "x", "1"),
    "CLASS": ("", "java.lang.String", "no.such.Class"),
    "DOUBLE": ("", "x", "-1", "0", "0.25", "0.5", "0.9", "1", "1.1", "NaN", "1e400"),
    "INT": _NUMBERS,
    "LIST": ("", "a", "a,b", "a,,b", "a,a"),
    "LONG": (*_NUMBERS, "9223372036854775807"),
    "PASSWORD": ("", "secret"),
    "SHORT": (*_NUMBERS, "32767", "32768"),
    "STRING": ("", "x"),
}
_MORE: dict[str, tuple[str, ...]] = {
    "compression.type": ("gzip", "GZIP", "producer"),
    "cordoned.log.dirs": ("*", "/no/such/dir"),
    "listener.security.protocol.map": ("PLAINTEXT:SSL,CONTROLLER:PLAINTEXT", "CONTROLLER:PLAINTEXT"),
    "log.cleaner.dedupe.buffer.size": ("1048576", "1048577", "1048578"),
    "log.cleanup.policy": ("delete", "compact,delete", "delete,compact", "Delete", "delete,delete"),
    "log.message.timestamp.type": ("CreateTime", "LogAppendTime", "createtime"),
    "max.connections.per.ip.overrides": ("h:1", "127.0.0.1:5", "h", "h:x", "h:-1", ":1", "a:1,b:2", "a b:1", "[::1]:4", "::1:4"),
    "metric.reporters": ("org.apache.kafka.common.metrics.JmxReporter",),
    "principal.builder.class": ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",),
    "ssl.client.auth": ("required", "requested", "none", "None"),
    "ssl.enabled.protocols": ("TLSv1.3", "TLSv1.2,TLSv1.3"),
    "ssl.keystore.type": ("JKS", "PEM", "PKCS12"),
    "ssl.truststore.type": ("JKS", "PEM", "PKCS12"),
}
_OUTSIDE = (
    ("follower.replication.throttled.rate", "LONG"),
    ("leader.replication.throttled.rate", "LONG"),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "LONG"),
    ("no.such.setting", "STRING"),
    ("listener.name.plaintext.no.such.setting", "STRING"),
    ("listener.name.other.no.such.setting", "STRING"),
    ("listener.name.plaintext.plain.sasl.jaas.config", "PASSWORD"),
    ("listener.name.other.plain.sasl.jaas.config", "PASSWORD"),
    ("listener.name.other.scram-sha-512.sasl.jaas.config", "PASSWORD"),
)
"""Settings that are in no table of options, with the type of the values to try."""
_OF_LISTENERS = (
    "connections.max.reauth.ms",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "message.max.bytes",
    "num.io.threads",
    "num.network.threads",
    "ssl.principal.mapping.rules",
)
"""Settings tried with the prefix of a listener, besides those of one broker."""
_LISTENERS = ("plaintext", "controller", "other")
_TOGETHER: tuple[dict[str, str], ...] = (
    {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097152"},
    {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097154"},
    {"listener.name.external.ssl.keystore.password": "secret", "log.cleaner.threads": "2"},
    {"listener.name.external.ssl.keystore.password": "secret", "log.cleaner.threads": "3"},
    {"log.retention.ms": "1000", "log.local.retention.ms": "2000"},
    {"log.retention.ms": "1000", "log.local.retention.ms": "1000"},
    {"log.retention.ms": "1000", "log.local.retention.ms": "-1"},
    {"log.retention.ms": "-1", "log.local.retention.ms": "-1"},
    {"log.retention.bytes": "1000", "log.local.retention.bytes": "2000"},
    {"log.retention.bytes": "1000", "log.local.retention.bytes": "-1"},
    {"log.retention.bytes": "1000", "log.local.retention.bytes": "1000"},
    {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
    {"num.io.threads": "16", "broker.id": "1"},
    {"num.io.threads": "16", "log.dirs": "/x", "num.partitions": "2"},
    {"num.io.threads": "17", "background.threads": "20"},
    {"num.io.threads": "17", "background.threads": "21"},
    {"ssl.keystore.location": "/x", "ssl.truststore.location": "/y"},
    {"ssl.keystore.location": "/x", "log.dirs": "/y"},
    {"listener.name.plaintext.max.connections": "5", "listener.name.plaintext.ssl.client.auth": "none"},
)


FIXED = "it cannot be changed while a node runs, and a change that is not made must not look as if it were"
NOT_LOADED = "Java classes are not loaded; Apache Kafka takes any class that it has, and finds out later"
NO_NUMBER = "no listener could read it; Apache Kafka asks open ones only"
ON_PURPOSE = {
    "* config.providers=a*": FIXED,
    "* sasl.enabled.mechanisms=*": FIXED,
    "* sasl.mechanism.inter.broker.protocol=*": FIXED,
    "* listener.security.protocol.map=SASL_SSL:SASL_SSL,*": "it is the map in force; where a map is given, Apache "
    "Kafka wants the controllers' listener in it",
    "* log.cleaner.min.cleanable.ratio=NaN": "no ratio is at least or at most that",
    "* log.cleaner.min.compaction.lag.ms=10": "a lag that is at least 10 and at most 5 ms",
    "* log.retention.ms=-2": "-1 is for ever; another negative number is a slip",
    "* max.connections.per.ip.overrides=:1": "an override for no host",
    "* max.connections.per.ip.overrides=h:-1": "a number of connections that cannot be",
    "* listener.name.controller.max.connection*=0": "a bound of 0 would close the listener; Apache Kafka asks open ones only",
    "* listener.name.other.max.connection*=0": "a bound of 0 would close the listener; Apache Kafka asks open ones only",
    "1 listener.name.controller.connections.max.reauth.ms=*": NO_NUMBER,
    "1 listener.name.other.connections.max.reauth.ms=*": NO_NUMBER,
    "* *ssl.engine.factory.class=java.lang.String": NOT_LOADED,
    "* listener.name.*.principal.builder.class=java.lang.String": NOT_LOADED,
    "1 *sasl.jaas.config=secret": "it names no login module",
    "+1 *": "a node id has digits only",
}
"""Patterns of scope, name and value whose answers differ, and why."""


class Change(NamedTuple):
    """One change of a name: the number of its operation and the value."""

    name: str
    operation: int
    value: str | None


class Case(NamedTuple):
    """Changes that are asked for together."""

    scope: str
    changes: tuple[Change, ...]

    @property
    def key(self) -> str:
        return json.dumps(self, ensure_ascii=False)


class Answer(NamedTuple):
    """``code`` by its name; ``named``: the settings of the request that its message names."""

    code: str
    named: tuple[str, ...]


def cases() -> list[Case]:
    """All of them, in the order of the recorded answers."""
    return [*_alone(), *(_sets(scope, each) for each in _TOGETHER for scope in (BROKER, CLUSTER)), *_operations()]


def _sets(scope: str, settings: dict[str, str]) -> Case:
    return Case(scope, tuple(Change(name, SET, value) for name, value in settings.items()))


def _alone() -> Iterator[Case]:
    facts = [json.loads(line) for line in (GOLDEN / "broker.jsonl").read_text().splitlines()]
    types = {fact["name"]: fact["type"] for fact in facts}
    for fact in facts:
        for value in _values(fact) if fact["dynamic"] != "read-only" else (fact["default"] or "1",):
            yield from (_sets(scope, {fact["name"]: value}) for scope in (BROKER, CLUSTER))
    tried = [fact["name"] for fact in facts if fact["dynamic"] == "per-broker"] + list(_OF_LISTENERS)
    for listener in _LISTENERS:
        for name in tried:
            for value in (*_OF_TYPE[types[name]], *_MORE.get(name, ())):
                yield from (_sets(scope, {f"listener.name.{listener}.{name}": value}) for scope in (BROKER, CLUSTER))
    for name, kind in _OUTSIDE:
        for value in _OF_TYPE[kind]:
            yield from (_sets(scope, {name: value}) for scope in (BROKER, CLUSTER))


def _values(fact: dict[str, str]) -> Sequence[str]:
    """Values to try for a setting: of its type, and around the bounds of its table and of changes while a node runs."""
    found = [*_OF_TYPE[fact["type"]], *_MORE.get(fact["name"], ())]
    default = fact["default"]
    if default is not None:
        found.append(default)
    if fact["type"] in ("INT", "LONG") and default is not None and 1 <= int(default) < 1 << 30:
        number = int(default)
        found += [str(each) for each in (2 * number, 2 * number + 1, number // 2, number // 2 - 1)]
    bounds = (fact["validator"] or "").strip("[]").split("]")[0].split(",")
    found += [str(int(end) + step) for end in bounds if end.lstrip("-").isdecimal() for step in (-1, 0, 1)]
    return list(dict.fromkeys(found))


def _operations() -> Iterator[Case]:
    for scope in (BROKER, CLUSTER):
        for operation in (DELETE, APPEND, SUBTRACT, 9):
            for name, value in (
                ("log.cleanup.policy", "compact"),
                ("log.cleanup.policy", "delete"),
                ("log.cleaner.threads", "2"),
                ("log.dirs", "/x"),
                ("ssl.keystore.location", "/x"),
                ("no.such.setting", "x"),
            ):
                yield Case(scope, (Change(name, operation, value),))
        yield Case(scope, (Change("log.cleaner.threads", SET, None),))
        yield Case(scope, (Change("log.cleaner.threads", SET, "1"), Change("log.cleaner.threads", SET, "1")))
        yield Case(scope, (Change("log.cleaner.threads", SET, "1"), Change("log.cleaner.threads", DELETE, None)))
    for scope in ("2", "x", "-1", "+1", "01"):
        yield _sets(scope, {"log.cleaner.threads": "1"})


def matches(case: Case, pattern: str) -> bool:
    """Whether one of its changes is of that pattern of ``ON_PURPOSE``."""
    texts = (f"{case.scope or 'all'} {each.name}={each.value}" for each in case.changes)
    return any(fnmatch.fnmatchcase(text, pattern) for text in texts)


def on_purpose(case: Case) -> bool:
    """Whether the answer may differ."""
    return any(matches(case, pattern) for pattern in ON_PURPOSE)


def recorded() -> dict[str, Answer]:
    """Apache Kafka's answers by the key of the case."""
    found: dict[str, Answer] = {}
    for scope, name, *rest in map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines()):
        if name is None:
            changes, code, named = rest
            found[Case(scope, tuple(Change(*each) for each in changes)).key] = Answer(code, tuple(named))
            continue
        for code, values in rest[0].items():
            for value in values:
                found[_sets(scope, {name: value}).key] = Answer(code, ())
    return found


def write(answers: Mapping[Case, Answer]) -> None:
    """Records the answers: a line for each setting and scope with its values by their codes, then one for each other case."""
    alone: dict[tuple[str, str], dict[str, list[str]]] = {}
    lines: list[object] = []
    for case, answer in answers.items():
        first = case.changes[0]
        if len(case.changes) == 1 and first.operation == SET and first.value is not None:
            alone.setdefault((case.scope, first.name), {}).setdefault(answer.code, []).append(first.value)
        else:
            lines.append((case.scope, None, case.changes, *answer))
    lines[:0] = [(scope, name, values) for (scope, name), values in alone.items()]
    RECORDED.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8")


def asked(bootstrap: str, wanted: Sequence[Case]) -> list[Answer]:
    """The answers of a running node."""
    from tidelog.cli.broker_connection import BrokerConnection

    with BrokerConnection(bootstrap) as connection:
        return [_answer(connection, case) for case in wanted]


def _answer(connection: object, case: Case) -> Answer:
    from tidelog.model.errors import ErrorCode
    from tidelog.protocol.messages import incremental_alter_configs as messages

    configs = [
        messages.AlterableConfig(name=each.name, config_operation=each.operation, value=each.value) for each in case.changes
    ]
    resource = messages.AlterConfigsResource(resource_type=4, resource_name=case.scope, configs=configs)
    request = messages.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    (result,) = connection.ask(request).responses  # type: ignore[attr-defined]
    said = result.error_message or ""
    return Answer(ErrorCode(result.error_code).name, tuple(each.name for each in case.changes if each.name in said))


def main() -> int:
    from tests.interop.java import JavaSide
    from tests.interop.nodes import Node, running

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the answers of Apache Kafka")
    kind = "apache" if parser.parse_args().write else "tidelog"
    wanted = cases()
    with tempfile.TemporaryDirectory() as folder:
        java = JavaSide(Path(folder) / "java.log") if kind == "apache" else None
        with running(Node(kind, Path(folder) / kind, java)) as node:
            answers = asked(node.bootstrap, wanted)
        if java is not None:
            java.close()
    if kind == "apache":
        write(dict(zip(wanted, answers, strict=True)))
        return 0
    theirs = recorded()
    differ = [
        (case, theirs[case.key], ours) for case, ours in zip(wanted, answers, strict=True) if theirs[case.key].code != ours.code
    ]
    for case, their, ours in differ:
        print(f"{case.key}: Apache Kafka {their.code}, tidelog {ours.code}")
    print(f"{len(wanted)} cases, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
