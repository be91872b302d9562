"""The command line that does what a button of the console does: one line, quoted for a shell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.console.quoting import joined, word
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType

_PLAIN = re.compile(r"[^\[\],=]*")


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands for one cluster. ``config``: the file with the settings of the client, if it needs one."""

    bootstrap: str
    config: str | None = None

    @property
    def connection(self) -> str:
        """The flags that name the cluster."""
        return joined(["--bootstrap-server", self.bootstrap, *(("--command-config", self.config) if self.config else ())])

    def line(self, tool: str, *words: str) -> str:
        """``tidelog TOOL`` with the connection and these words."""
        return f"tidelog {tool} {self.connection} {joined(words)}"

    def create_topic(self, name: str, partitions: int | None, replication: int | None, configs: Mapping[str, str]) -> str:
        words = ["--create", "--topic", name]
        words += [] if partitions is None else ["--partitions", str(partitions)]
        words += [] if replication is None else ["--replication-factor", str(replication)]
        for key, value in configs.items():
            words += ["--config", f"{key}={value}"]
        return self.line("topics", *words)

    def delete_topic(self, name: str) -> str:
        return self.line("topics", "--delete", "--topic", name)

    def add_partitions(self, name: str, count: int) -> str:
        return self.line("topics", "--alter", "--topic", name, "--partitions", str(count))

    def alter_topic(self, name: str, change: Mapping[str, str], remove: Sequence[str]) -> str | None:
        """None for a value that the tool's syntax cannot carry."""
        if not all(_PLAIN.fullmatch(value.replace(",", "")) for value in change.values()):
            return None
        words = ["--alter", "--entity-type", "topics", "--entity-name", name]
        if change:
            pairs = (f"{key}=[{value}]" if "," in value else f"{key}={value}" for key, value in change.items())
            words += ["--add-config", ",".join(pairs)]
        words += ["--delete-config", ",".join(remove)] if remove else []
        return self.line("configs", *words)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> str:
        """The tool takes a file; bash makes one of a text."""
        rows = [{"topic": topic, "partition": index, "offset": offset} for index, offset in sorted(before.items())]
        text = json.dumps({"partitions": rows, "version": 1}, separators=(",", ":"))
        return f"{self.line('delete-records', '--offset-json-file')} <(echo {word(text)})"

    def produce(self, topic: str, value: str) -> str | None:
        """None for a value of several lines, or with other control characters."""
        if not value.isprintable():
            return None
        return f"printf '%s\\n' {word(value)} | {self.line('console-producer', '--topic', topic)}"

    def reset(self, kind: str, group_id: str, topics: Iterable[str], target: Sequence[str]) -> str:
        """``kind``: the type of the group. ``topics``: ``orders`` or ``orders:0,1``; none for all of the group."""
        flag, every = ("--input-topic", "--all-input-topics") if kind == "streams" else ("--topic", "--all-topics")
        chosen = [word for each in topics for word in (flag, each)] or [every]
        return self.line(tool_of(kind), "--reset-offsets", "--group", group_id, *chosen, *target, "--execute")

    def forget_offsets(self, kind: str, group_id: str, topic: str) -> str:
        flag = "--input-topic" if kind == "streams" else "--topic"
        return self.line(tool_of(kind), "--delete-offsets", "--group", group_id, flag, topic)

    def delete_group(self, kind: str, group_id: str) -> str:
        return self.line(tool_of(kind), "--delete", "--group", group_id)

    def terminate(self, transactional_id: str) -> str:
        return self.line("transactions", "force-terminate", "--transactional-id", transactional_id)

    def acl(self, action: str, entry: AccessControlEntry) -> str | None:
        """``action``: ``--add`` or ``--remove``. None for kinds of resources that the tool has no flag for."""
        kind = ResourceType(entry.resource_type)
        resource = {
            ResourceType.TOPIC: ["--topic", entry.resource_name],
            ResourceType.GROUP: ["--group", entry.resource_name],
            ResourceType.CLUSTER: ["--cluster"],
            ResourceType.TRANSACTIONAL_ID: ["--transactional-id", entry.resource_name],
            ResourceType.DELEGATION_TOKEN: ["--delegation-token", entry.resource_name],
        }.get(kind)
        if resource is None:
            return None
        who = "allow" if entry.permission_type == PermissionType.ALLOW else "deny"
        words = [action, *resource]
        if entry.pattern_type == PatternType.PREFIXED:
            words += ["--resource-pattern-type", "prefixed"]
        words += [f"--{who}-principal", entry.principal, f"--{who}-host", entry.host]
        words += ["--operation", operation_word(entry.operation)]
        return self.line("acls", *words, *(["--force"] if action == "--remove" else []))


def tool_of(kind: str) -> str:
    """The command for groups of a type."""
    return {"share": "share-groups", "streams": "streams-groups"}.get(kind, "consumer-groups")


def operation_word(operation: int) -> str:
    """``DESCRIBE_CONFIGS`` as Kafka's tool takes it: ``DescribeConfigs``."""
    return "".join(part.capitalize() for part in AclOperation(operation).name.split("_"))
