"""No option may be accepted in silence: it is read somewhere, or its row says why it is not."""

from __future__ import annotations

import re
from pathlib import Path

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.topic_options import TOPIC_OPTIONS

SRC = Path(__file__).parents[3] / "src/tidelog"
DECLARATIONS = re.compile(r"typed|topic_config|topic_options|group_options|tidelog_options|broker_\w+")
READ = re.compile(r"(?<!record)(?<!request)\.([a-z][a-z0-9_]+)\b")
"""An attribute of something that is no metadata record and no request: some of their fields are called like options."""

OF_A_LISTENER = re.compile(r"""options\.value\("([a-z.]+)\"""")
OF_A_LOGIN = re.compile(r'\b(?:value|seconds)\("([a-z.]+)"\)')
QUOTED = re.compile(r'"([a-z0-9.]+)"')
"""What a listener may have for itself is read by its name, in the modules of a listener's settings."""


def attributes_read() -> set[str]:
    names: set[str] = set()
    for path in SRC.rglob("*.py"):
        is_declaration = path.parent.name == "config" and DECLARATIONS.fullmatch(path.stem)
        # A client's settings have names of brokers' options too, and reading them is no broker's doing.
        if not is_declaration and path.parent.name not in ("messages", "definitions", "client", "spark"):
            names.update(READ.findall(path.read_text()))
    for path in (*(SRC / "config").glob("listener_*.py"), SRC / "config/key_store_settings.py"):
        # listener_sasl also names the options that it refuses.
        pattern = OF_A_LISTENER if path.stem == "listener_sasl" else QUOTED
        names.update(name.replace(".", "_") for name in pattern.findall(path.read_text()))
    names.update(name.replace(".", "_") for name in OF_A_LOGIN.findall((SRC / "server/cluster/token_source.py").read_text()))
    return names


def test_every_option_is_read_or_says_why_not() -> None:
    read = attributes_read()
    topic_read = {name for name, option in TOPIC_OPTIONS.items() if option.attribute in read}
    acting = {name for name, option in BROKER_OPTIONS.items() if option.attribute in read}
    acting.update(follows for name in topic_read for follows, _ in TOPIC_OPTIONS[name].falls_back_to)
    acting.update(follows for name in list(acting) for follows, _ in BROKER_OPTIONS[name].falls_back_to)
    silent = [o.name for o in BROKER_OPTIONS.values() if o.name not in acting and o.inert is None and o.refuses is None]
    silent += [
        f"topic {o.name}" for o in TOPIC_OPTIONS.values() if o.name not in topic_read and o.inert is None and o.refuses is None
    ]
    assert not silent, f"accepted, not read anywhere, and without inert=: {', '.join(silent)}"


def test_no_option_that_calls_itself_inert_is_read() -> None:
    read = attributes_read()
    lying = [o.name for o in (*BROKER_OPTIONS.values(), *TOPIC_OPTIONS.values()) if o.inert is not None and o.attribute in read]
    assert not lying, f"read in src, though inert= says they do nothing: {', '.join(lying)}"
