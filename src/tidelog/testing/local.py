"""``LocalBroker``: ``Broker()`` with a node in a thread of this process, and its disk in memory or in a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from tidelog.controller.dynamic_configs import AlterConfigOp
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import GROUP_RESOURCE
from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSystem
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.records.builder import build_batch
from tidelog.replication.partition import Partition
from tidelog.storage.validation import DeepValidation
from tidelog.testing import group_sessions
from tidelog.testing.clock import Clock
from tidelog.testing.memory_disk import MemoryDisk
from tidelog.testing.node_thread import CALL_TIMEOUT_S, NodeThread, settings_of
from tidelog.testing.reading import visible
from tidelog.testing.records import Message, Text, to_records

if TYPE_CHECKING:
    from tidelog.testing.permissions import Rule
    from tidelog.testing.users import Users

TOPIC_TIMEOUT_MS = 10_000


class LocalBroker:
    """``Broker`` in this process; the methods are documented there."""

    def __init__(
        self,
        data: str | PathLike[str] | None = None,
        port: int = 0,
        config: Mapping[str, str | int] | None = None,
        clock: Clock | None = None,
        users: Users | None = None,
    ) -> None:
        settings = settings_of(config)
        self._users = users
        if users is not None:
            settings = users.settings(port) | settings
        settings.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{port}")
        settings["log.dirs"] = "/memory" if data is None else str(data)
        self._fs: FileSystem | None = MemoryDisk() if data is None else None
        self.clock = clock or Clock()
        self.thread = NodeThread(settings, self.clock)
        self.faults = self.thread.faults

    # -- life ----------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.thread.start(self._fs)
        if self._users is not None:
            try:
                self._users.create(self.thread)
            except BaseException:
                self.thread.stop()
                raise

    def stop(self) -> None:
        self.thread.stop()

    def restart(self) -> None:
        self.thread.keep_port()
        self.stop()
        self.start()

    def kill(self) -> None:
        raise RuntimeError("a broker inside the test's own process cannot be killed; ask for Broker(process=True)")

    def set_acls(self, acls: Sequence[Rule]) -> None:
        """Called by ``Broker.access``."""
        assert self._users is not None
        self._users.replace_acls(self.thread, acls)

    @property
    def port(self) -> int:
        return self.thread.port

    @property
    def where(self) -> str:
        """Its address for messages; "not running" without one."""
        return f"127.0.0.1:{self.port}" if self.thread.is_running else "not running"

    # -- topics and records --------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, replicas: int, config: Mapping[str, str | int]) -> None:
        configs = [CreatableTopicConfig(name=key.replace("_", "."), value=str(value)) for key, value in config.items()]
        self._create(CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs))

    def _create(self, topic: CreatableTopic, *, if_missing: bool = False) -> None:
        name = topic.name
        response = self.thread.ask(
            QuorumController.create_topics, CreateTopicsRequest(topics=[topic], timeout_ms=TOPIC_TIMEOUT_MS)
        )
        result = response.topics[0]
        if if_missing and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            self.thread.wait(self._opened(name))
        elif result.error_code:
            raise ValueError(f"topic {name} was not created: {result.error_message or ErrorCode(result.error_code).name}")

    @property
    def topics(self) -> list[str]:
        return sorted(name for name in self.thread.running().broker.image.topics.by_name if not name.startswith("__"))

    def produce(self, topic: str, *values: Text | tuple[Text, Text] | Message, partition: int) -> None:
        if topic not in self.thread.running().broker.image.topics.by_name:
            # Another thread, or a client, may create it meanwhile.
            self._create(CreatableTopic(name=topic, num_partitions=max(1, partition + 1), replication_factor=1), if_missing=True)
        self.thread.call(lambda: self._append(topic, partition, values))

    async def _opened(self, topic: str) -> None:
        """Returns when a topic that another caller has just created can be written to."""
        async with asyncio.timeout(CALL_TIMEOUT_S):
            # Only the request that created it gets a response.
            while not isinstance(self.thread.running().broker.replicas.by_name(topic, 0), Partition):  # noqa: ASYNC110
                await asyncio.sleep(0.0005)

    def messages(self, topic: str, partition: int | None, committed: bool) -> list[Message]:
        return self.thread.call(lambda: self._read(topic, partition, committed))

    def _append(self, topic: str, index: int, values: Iterable[Text | tuple[Text, Text] | Message]) -> None:
        now_ms = self.thread.running().runtime.now_ms()
        batch = build_batch(to_records(values, now_ms))
        found = self._partition(topic, index)
        result = found.append(memoryview(batch), now_ms, 1)
        if isinstance(result, DeepValidation):
            result = found.append_validated(result.run(), now_ms, 1)
        if result.error is not ErrorCode.NONE:
            raise ValueError(f"{topic}-{index} refused the records: {result.error_message or result.error.name}")

    def _partition(self, topic: str, index: int) -> Partition:
        found = self.thread.running().broker.replicas.by_name(topic, index)
        if not isinstance(found, Partition):
            raise ValueError(f"there is no partition {index} of topic {topic}: {found.name}")
        return found

    def _read(self, topic: str, only: int | None, committed: bool) -> list[Message]:
        image = self.thread.running().broker.image.topics.by_name.get(topic)
        if image is None:
            raise ValueError(f"there is no topic {topic}; there are {', '.join(self.topics) or 'none'}")
        messages: list[Message] = []
        for index in range(len(image.partitions)) if only is None else [only]:
            log = self._partition(topic, index).log
            messages += [] if log is None else visible(log, index, committed=committed)
        return messages

    # -- time and groups ------------------------------------------------------------------------------------------------------

    def configure_group(self, group: str, config: Mapping[str, str | int | None]) -> None:
        """Called by ``Broker.group_settings``."""
        configs = [
            AlterableConfig(key.replace("_", "."), AlterConfigOp.DELETE, None)
            if value is None
            else AlterableConfig(key.replace("_", "."), AlterConfigOp.SET, str(value))
            for key, value in config.items()
        ]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (result,) = self.thread.ask(QuorumController.incremental_alter_configs, request).responses
        if result.error_code:
            raise ValueError(f"group {group} was not configured: {result.error_message or ErrorCode(result.error_code).name}")

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def expire_member(self, group: str, member_id: str | None) -> list[str]:
        return self.thread.call(
            lambda: group_sessions.end(
                self.thread.running().broker.groups, group, member_id, self.thread.running().runtime.even_ms()
            )
        )

    def groups(self) -> list[str]:
        return self.thread.call(lambda: group_sessions.names(self.thread.running().broker.groups))

    def committed_offsets(self, group: str) -> dict[tuple[str, int], int]:
        return self.thread.call(lambda: group_sessions.committed_offsets(self.thread.running().broker.groups, group))

    def reload_coordinators(self) -> None:

        def reload() -> None:
            broker = self.thread.running().broker
            for shards in (broker.groups, broker.transactions, broker.shares):
                shards.reload()

        self.thread.call(reload)

    # -- between tests -------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        self.faults.clear()
        node, disk = self.thread.running(), self._fs
        if isinstance(disk, MemoryDisk) and (disk.full or node.failed.is_set() or not node.logs.online_dirs()):
            self._fs = MemoryDisk()
            self.restart()
            return
        if self._users is not None:
            self._users.create(self.thread)
        for (kind, group), config in list(node.broker.image.configs.items()):
            if kind == GROUP_RESOURCE:
                self.configure_group(group, dict.fromkeys(config))
        unused = self.thread.call(lambda: group_sessions.unused_topics(self.thread.running().broker))
        names = [name for name in self.thread.running().broker.image.topics.by_name if name not in unused]
        if names:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=TOPIC_TIMEOUT_MS)
            self.thread.ask(QuorumController.delete_topics, request)
            self.thread.wait(self.thread.prepare(self.thread.running()))

    def fill_disk(self, full: bool) -> None:
        if not isinstance(self._fs, MemoryDisk):
            raise RuntimeError("only the disk of a broker in memory can be filled")
        self._fs.full = full
