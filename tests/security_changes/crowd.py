"""All clients of a run: they start together, and in the end everything that was written is read and judged."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.security_changes.access import Access
from tests.security_changes.account import Account, Place
from tests.security_changes.clients import AiokafkaReader, Client, Reader

READERS = (Reader, AiokafkaReader)


class Crowd:
    """See the module. Names are of clients, and of the groups of readers. ``java``: None without Kafka's own clients."""

    def __init__(self, account: Account, java: JavaClients | None) -> None:
        self.account, self.java = account, java
        self.clients: dict[str, Client] = {}

    def add(self, *clients: Client) -> None:
        """They start."""
        for client in clients:
            self.clients[client.name] = client
            client.start()

    def __getitem__(self, name: str) -> Client:
        return self.clients[name]

    @property
    def names(self) -> list[str]:
        return list(self.clients)

    def leave(self, *names: str) -> None:
        """These end."""
        for name in names:
            self.clients.pop(name).stop()

    def finish(self) -> list[str]:
        """Writers end, readers read all there is and end. The readers, which are groups of their own."""
        readers = [each for each in self.clients.values() if isinstance(each, READERS)]
        for client in self.clients.values():
            if client not in readers:
                client.stop()
        for reader in readers:
            self.account.until(lambda reader=reader: self._has_all(reader), f"{reader.name} reads everything")  # type: ignore[misc]
            reader.stop()
        return [reader.name for reader in readers]

    def _has_all(self, reader: Client) -> bool:
        return self.account.written.keys() <= self.account.read[reader.name].keys()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for client in self.clients.values():
            client.stopping.set()
        if error is not None and self.java is not None:
            with contextlib.suppress(JavaFailed):
                self.java.stop()


class JavaClients:
    """Kafka's Java clients: a consumer in a group that works all the time, and a producer that comes and goes."""

    def __init__(self, java: JavaSide, account: Account, access: Access, topic: str) -> None:
        self.java, self.account, self.access, self.topic = java, account, access, topic
        self.name = f"java-{topic}"
        self.count = 0
        self.values: list[str] = []
        self.start()

    def start(self) -> None:
        config = {**self.access.java, "group.id": self.name, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        config |= {"isolation.level": "read_committed", "fetch.max.wait.ms": "50"}
        self._ask("member_start", name=self.name, topics=[self.topic], config=config)

    def write(self, count: int = 9) -> None:
        """By an idempotent producer."""
        values = [f"{self.name}/{self.count + number}".encode() for number in range(1, count + 1)]
        self.count += count
        records = [
            {"partition": number % 3, "key": None, "value": as_text(value), "timestamp": int(time.time() * 1000), "headers": []}
            for number, value in enumerate(values)
        ]
        told = self._ask("produce", topic=self.topic, config=self.access.java, records=records)
        for number, (value, offset) in enumerate(zip(values, told["offsets"], strict=True)):
            self.account.acknowledged(self.name, (self.topic, number % 3, offset), value)

    def move(self, access: Access) -> None:
        """The consumer ends, and another one of the group begins with this access."""
        self.stop()
        self.access = access
        self.start()

    def stop(self) -> None:
        self.values += self.java.ask("member_stop", name=self.name, how="leave")["values"]

    def finish(self, found: Mapping[Place, bytes]) -> list[str]:
        """It reads all that is in the log, and ends; what is wrong with what it read."""
        wanted = sorted(value.decode() for value in found.values())
        already = self.values
        self.account.until(lambda: len(already) + len(self._seen()) >= len(wanted), f"{self.name} reads everything")
        self.stop()
        return (
            []
            if sorted(self.values) == wanted
            else [f"{self.name} read {len(self.values)} of {len(wanted)} records, not each once"]
        )

    def _seen(self) -> list[Any]:
        found: list[Any] = self.java.ask("member_look", name=self.name)["values"]
        return found

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.java.ask(op, bootstrap=self.access.bootstrap, **fields)
