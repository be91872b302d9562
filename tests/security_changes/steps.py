"""The steps from plain text to a secured cluster, as the guide has them: the settings that each one changes, for the files of
nodes on this machine."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.interop.nodes import ROOT
from tidelog.config.properties import parse

GUIDE = ROOT / "docs" / "guide" / "security.md"
FOLDER = "/etc/tidelog/"
PLAIN, CONTROLLER, CLIENTS, NODES, QUORUM = range(9092, 9097)
"""Ports in the guide, on every host."""
CONTROLLER_LISTENERS = ("CONTROLLER", "QUORUM")
OF_THIS_NODE = ("listeners", "ssl.keystore.location")
_STEP = re.compile(r"<!-- step (\d) -->\n```properties\n(.*?)```", re.DOTALL)
_ADDRESS = re.compile(r"node-(\d+):(\d+)")


def documented_steps() -> list[dict[str, str]]:
    """The settings that each step changes in the file of node 1, in the guide's words."""
    found = _STEP.findall(GUIDE.read_text())
    assert [int(number) for number, _ in found] == [1, 2, 3], "the guide has three steps"
    return [parse(text) for _, text in found]


def settings_after(
    step: int, node_id: int, roles: str, folder: str, controllers: list[int], port: Callable[[int, int], int]
) -> dict[str, str]:
    """What the first ``step`` steps have changed in the file of a node. ``port``: of a node and of a port in the guide."""

    def address(found: re.Match[str]) -> str:
        return f"127.0.0.1:{port(int(found[1]), int(found[2]))}"

    changed = {name: text for each in documented_steps()[:step] for name, text in each.items()}
    settings = {}
    for name, text in changed.items():
        if name == "controller.quorum.bootstrap.servers":
            text = ",".join(f"node-{each}:{text.rpartition(':')[2]}" for each in controllers)
        elif name == "super.users":
            text = ";".join(["User:admin", *(f"User:CN=node-{each}" for each in sorted({1, 2, 3, *controllers}))])
        elif name in OF_THIS_NODE:
            text = text.replace("node-1", f"node-{node_id}")
        if name == "listeners":
            text = ",".join(each for each in text.split(",") if _serves(each.partition(":")[0], roles))
        settings[name] = _ADDRESS.sub(address, text).replace(FOLDER, f"{folder}/")
    if "broker" not in roles:
        settings.pop("inter.broker.listener.name", None)
    return settings


def _serves(listener: str, roles: str) -> bool:
    return ("controller" if listener in CONTROLLER_LISTENERS else "broker") in roles
