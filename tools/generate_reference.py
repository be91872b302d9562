"""Writes what follows from the tables: docs/reference/{configs,apis,errors,metrics,facts}.md and src/tidelog/config/typed.py.

``python tools/generate_reference.py`` writes them; ``--check`` says which are not what the tables give, and exits 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from tidelog.broker.api import Needs, Route
from tidelog.broker.deferred import loaded
from tidelog.broker.quotas.limits import Kind
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.config import (
    broker_groups,
    broker_log,
    broker_network,
    broker_quorum,
    broker_remote_log,
    broker_replication,
    broker_security,
    broker_transactions,
    tidelog_options,
)
from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.group_options import CLIENT_METRICS_OPTIONS, GROUP_OPTIONS
from tidelog.config.options import Dynamic, Option, Type, value_text
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.config.unknown_settings import REMOVED
from tidelog.metrics.catalog import CATALOG
from tidelog.metrics.facts import FACTS, SCHEMA
from tidelog.model.errors import ErrorCode
from tidelog.protocol import registry

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by tools/generate_reference.py from the tables in src/tidelog; change those. -->\n\n"
FAMILIES = (
    ("tidelog's own", tidelog_options),
    ("Listeners, connections, limits", broker_network),
    ("Logs and topics", broker_log),
    ("Node and metadata quorum", broker_quorum),
    ("Replication", broker_replication),
    ("Tiered storage", broker_remote_log),
    ("Groups and offsets", broker_groups),
    ("Producers, transactions, share state", broker_transactions),
    ("Security", broker_security),
)
CHANGES = {Dynamic.READ_ONLY: "at start", Dynamic.PER_BROKER: "per broker", Dynamic.CLUSTER_WIDE: "while running"}
PYTHON_TYPES = {
    Type.BOOLEAN: "bool",
    Type.STRING: "str",
    Type.INT: "int",
    Type.SHORT: "int",
    Type.LONG: "int",
    Type.DOUBLE: "float",
    Type.LIST: "tuple[str, ...]",
    Type.CLASS: "str",
    Type.PASSWORD: "Password",
}


def cell(text: str) -> str:
    """Text that stays in its cell of a Markdown table."""
    return text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def code(text: str) -> str:
    """Inline code, or nothing for nothing."""
    return f"`{cell(text)}`" if text else ""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def effect(option: Option) -> str:
    """What the option does here, and what it does not."""
    if option.inert is not None:
        return f"{option.doc} *No effect: {option.inert}.*"
    if option.refuses is not None:
        return f"{option.doc} *A node does not start with it: {option.refuses}.*"
    return option.doc


def default(option: Option) -> str:
    """The default; where it is not set, what gives the value instead."""
    if option.default is None:
        return " or ".join(code(name) for name, _ in option.falls_back_to) or ("required" if option.required else "not set")
    return code(value_text(option.default) or "") or "empty"


def option_rows(options: Iterable[Option], *, changes: bool) -> Iterable[tuple[str, ...]]:
    """Rows of an option table."""
    for option in sorted(options, key=lambda row: row.name):
        if option.internal:
            continue
        bounds = code(str(option.check)) if option.check is not None else ""
        when = (CHANGES[option.dynamic],) if changes else ()
        yield (code(option.name), option.type.name.lower(), default(option), bounds, *when, cell(effect(option)))


def configs() -> str:
    """docs/reference/configs.md."""
    counts = {
        "act": sum(o.inert is None and o.refuses is None for o in BROKER_OPTIONS.values()),
        "inert": sum(o.inert is not None for o in BROKER_OPTIONS.values()),
        "refused": sum(o.refuses is not None for o in BROKER_OPTIONS.values()),
    }
    text = (
        f"{MADE}# Configuration\n\n"
        "A node reads a `server.properties` as Apache Kafka does: the same names, types and defaults. "
        f"{counts['act']} broker options act; {counts['inert']} are accepted and have no effect yet, and a node that is given "
        f"another value than the default says so at its start; {counts['refused']} stop the start, because to ignore them would "
        "leave something open or lost. A name that no table has is ignored with a warning that names the nearest one; an "
        "unknown `tidelog.` name is an error.\n\n"
        "Without `process.roles` a file describes one combined node: broker and controller in one, on `localhost:9092`.\n\n"
        "*Changes*: at start (a restart is needed), per broker, or while running for one broker or all.\n"
    )
    head = ("Option", "Type", "Default", "Bounds", "Changes", "What it does")
    for title, module in FAMILIES:
        text += f"\n## Broker: {title}\n\n" + table(head, option_rows(module.OPTIONS, changes=True))
    for title, named in (("Topics", TOPIC_OPTIONS), ("Groups", GROUP_OPTIONS), ("Client metrics", CLIENT_METRICS_OPTIONS)):
        text += f"\n## {title}\n\n"
        if named is TOPIC_OPTIONS:
            text += "A topic that does not set one follows the broker: " + follows(TOPIC_OPTIONS) + ".\n\n"
        text += table(("Option", "Type", "Default", "Bounds", "What it does"), option_rows(named.values(), changes=False))
    text += "\n## Of earlier versions\n\nThese are ignored with a warning.\n\n"
    return text + table(("Option", "Instead"), ((code(name), cell(why)) for name, why in sorted(REMOVED.items())))


def follows(options: Mapping[str, Option]) -> str:
    """Topic options whose broker option has another name."""
    pairs = [(name, o.falls_back_to[0][0]) for name, o in options.items() if o.falls_back_to and o.falls_back_to[0][0] != name]
    return ", ".join(f"{code(name)} {code(broker)}" for name, broker in pairs) + "; the others have the same name"


def permissions(needs: Needs) -> str:
    """What a client has to be allowed; by resource where the handler decides."""
    names = ", ".join(f"{need.operation.name} {need.resource.name}" for need in needs.permissions)
    return f"{names} (by resource)" if needs.in_handler else names


def api_rows(apis: Mapping[int, Route]) -> Iterable[tuple[str, ...]]:
    """Rows of a table of requests; what one is for is the first paragraph of its handler's documentation."""
    for key, route in sorted(apis.items()):
        api = route.api
        name = registry.request_class(key).NAME.removesuffix("Request")
        told = "" if api.told == api.versions else f"{api.told[0]} to {api.told[1]}"
        doc = (loaded(route.handler).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        served = f"{api.versions[0]} to {api.versions[1]}"
        forwarded = "yes" if api.forwarded else ""
        quota = "" if api.quota is Kind.REQUEST else code(api.quota.value)
        yield str(key), name, served, told, permissions(route.needs), forwarded, quota, cell(" ".join(doc.split()))


def apis() -> str:
    """docs/reference/apis.md."""
    head = ("Key", "Request", "Versions", "Advertised", "Permission", "Forwarded", "Quota", "What it is for")
    return (
        f"{MADE}# Requests\n\n"
        "What is served, complete at these versions. A request that is not in the list, or at another version, closes its "
        "connection, as in Apache Kafka; clients find the versions out with ApiVersions.\n\n"
        "*Permission*: what a node with an authorizer asks for, as Apache Kafka does; without one all is allowed. "
        "*Forwarded*: the active controller decides, whichever broker is asked. *Quota*: what the request counts against besides "
        "`request_percentage`.\n\n"
        "## On a broker's listeners\n\n" + table(head, api_rows(BROKER_APIS)) + "\n## On a controller's listeners\n\n"
        "A controller that is not the active one answers NOT_CONTROLLER to what only that one decides.\n\n"
        + table(head, api_rows(CONTROLLER_APIS))
    )


def errors() -> str:
    """docs/reference/errors.md."""
    rows = ((str(int(each)), code(each.name), "yes" if each.retriable else "", cell(each.text)) for each in ErrorCode)
    return f"{MADE}# Error codes\n\n*Retry*: the same request may succeed later.\n\n" + table(
        ("Code", "Name", "Retry", "What it tells"), rows
    )


def metrics() -> str:
    """docs/reference/metrics.md."""
    rows = ((code(m.name), m.kind.value, ", ".join(map(code, m.labels)), cell(m.doc)) for m in CATALOG)
    return (
        f"{MADE}# Metrics\n\n"
        "Served at `/metrics` on `tidelog.http.listener` in Prometheus's text format, under the names that dashboards for Apache "
        "Kafka and for kafka_exporter ask for. Series with `topic` but without a value for it are sums over all topics since the "
        "start. A summary has quantiles (0.50 to 0.999) of the last one to two minutes, `_count` and `_sum`. On Linux the usual "
        "`process_` metrics are served besides.\n\n" + table(("Metric", "Kind", "Labels", "What it tells"), rows)
    )


def facts() -> str:
    """docs/reference/facts.md."""
    rows = ((code(fact.path), fact.kind.value, "yes" if fact.names else "", cell(fact.doc)) for fact in FACTS)
    return (
        f"{MADE}# Facts of a node\n\n"
        "Served at `/facts` on `tidelog.http.listener` as one JSON object of a bounded size: what a node does now, for `tidelog "
        "top` and other programs. A path names a value in it; `[]` stands for the entries of a list. A section is null when it "
        "could not be read, and a value where it is not known. Names are null for a reader who may not see them: "
        "[who may, what the page costs, and what bounds it](../internals/facts.md). A node that is only a controller has no "
        "`topics`, `partitions`, `groups` and `transactions`.\n\n"
        "Several processes of `tidelog start --processes` share one address, which answers with their pages in the list `nodes`, "
        "and with the numbers of the nodes that gave none in `missing`.\n\n"
        f"The schema is {SCHEMA}. It is raised when a fact goes or changes its meaning; new ones may come without, so ignore "
        "what you do not know.\n\n" + table(("Fact", "Value", "A name", "What it tells"), rows)
    )


def typed_config() -> str:
    """src/tidelog/config/typed.py: the broker options as typed attributes, so that mypy knows ``config.log_retention_ms``;
    a class for each table of options."""
    modules = sorted((module for _, module in FAMILIES), key=lambda each: each.__name__)
    classes = {f"{_subject(module)}Values": module for module in modules}
    bases = ",\n    ".join(classes)
    return (
        '"""Generated by tools/generate_reference.py from the option tables; do not edit."""\n\n'
        "from tidelog.config.options import Password\n\n\n"
        + "\n\n".join(typed_class(name, module) for name, module in classes.items())
        + f"\n\nclass BrokerValues(\n    {bases},\n):\n"
        '    """All broker options by attribute: dots are underscores, the type is that of the parsed value."""\n'
    )


def _subject(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2].removeprefix("broker_").title().replace("_", "")


def typed_class(name: str, module: ModuleType) -> str:
    """The options of one table."""
    lines = ""
    for option in sorted(module.OPTIONS, key=lambda each: each.attribute):
        nullable = option.default is None and not option.falls_back_to and not option.required
        lines += f"    {option.attribute}: {PYTHON_TYPES[option.type]}{' | None' if nullable else ''}\n"
    return f'class {name}:\n    """The options of ``{module.__name__}``."""\n\n{lines}'


def files() -> dict[str, str]:
    """Text by path from the root."""
    return {
        "docs/reference/configs.md": configs(),
        "docs/reference/apis.md": apis(),
        "docs/reference/errors.md": errors(),
        "docs/reference/metrics.md": metrics(),
        "docs/reference/facts.md": facts(),
        "src/tidelog/config/typed.py": typed_config(),
    }


def main() -> int:
    """Write the files, or check them."""
    stale = 0
    for path, text in files().items():
        target = ROOT / path
        if "--check" in sys.argv:
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                print(f"{path} is not what the tables give: run make docs")
                stale = 1
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
