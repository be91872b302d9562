"""Apache Kafka's Java clients and tools in one long-lived JVM (``setup/Roundtrip.java``), spoken to in lines of JSON."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from tools.jars import SETUP, compiled, ensure

LOG4J = SETUP / "log4j2.properties"
SOURCES = (
    SETUP / "Roundtrip.java",
    SETUP / "Decisions.java",
    SETUP / "PartitionChanges.java",
    SETUP / "Transactional.java",
    SETUP / "Members.java",
    SETUP / "Security.java",
)
# Small and quick to start, for tests; the benchmark gives a node Kafka's own flags.
JVM_FLAGS = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
ANSWER_LIMIT_S = 120


def classes() -> Path:
    """The folder with ``Roundtrip.class``. Raises JarsMissing."""
    return compiled("roundtrip", SOURCES, ensure())


def as_text(data: bytes | None) -> str | None:
    """Bytes as they travel in JSON."""
    return None if data is None else base64.b64encode(data).decode()


def as_bytes(text: str | None) -> bytes | None:
    """The way back."""
    return None if text is None else base64.b64decode(text)


class JavaFailed(AssertionError):
    """The Java side answered with an exception; the text is its message."""


class JavaSide:
    """The JVM. Started with the first request, one request at a time."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One request and its answer. Raises JavaFailed."""
        if self.process is None:
            command = [
                "java",
                *JVM_FLAGS,
                f"-Dlog4j2.configurationFile={LOG4J}",
                "-cp",
                f"{classes()}:{ensure()}/*",
                "Roundtrip",
            ]
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(ANSWER_LIMIT_S, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps({"op": op, **fields}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            self.close()
            log_end = self.log.read_text()[-3000:]
            raise JavaFailed(f"the JVM ended, or gave no answer to {op} within {ANSWER_LIMIT_S} s; its log ends:\n{log_end}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise JavaFailed(f"{op}: {answer['error']}")
        return answer

    def tool(self, main_class: str, *args: str) -> dict[str, Any]:
        """Run a tool's ``main``: its exit ``status``, and what it printed: ``out``, ``err``."""
        return self.ask("tool", **{"class": main_class, "args": list(args)})

    def open_clients(self) -> list[str]:
        """Producers and consumers that no test has closed: they would go on asking for nodes that are gone, and say so in the
        output of tools that later tests run."""
        names: list[str] = self.ask("open_clients")["names"] if self.process is not None else []
        return names

    def close(self) -> None:
        """End the JVM."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
