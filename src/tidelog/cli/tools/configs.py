"""``tidelog configs``, also installed as ``kafka-configs``: dynamic settings of topics, brokers, loggers, groups, client
metrics; quotas, which are in ``quota_configs``; credentials of users, which are in ``scram_configs``.

Flags and lines are those of Kafka's tool. Changes are incremental: settings that are not named stay. Controllers change and
describe settings too, but list no topics, groups or quotas.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import target, target_options
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import config_entities, quota_configs, scram_configs
from tidelog.cli.tools.config_entities import Named
from tidelog.cli.tools.quota_configs import QUOTA_TYPES

if TYPE_CHECKING:
    from tidelog.cli.broker_connection import Session
    from tidelog.client.calls import Node

SET, DELETE = 0, 1
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TYPES = {"topics": TOPIC, "brokers": BROKER, "broker-loggers": BROKER_LOGGER, "client-metrics": CLIENT_METRICS, "groups": GROUP}
OWN_SOURCE = {TOPIC: 1, BROKER: 2, BROKER_LOGGER: 6, CLIENT_METRICS: 7, GROUP: 8}
"""DescribeConfigs numbers of the sources of a resource's own values."""
DEFAULT_BROKER_SOURCE = 3
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
KINDS = (*TYPES, *QUOTA_TYPES)
FILE = click.Path(exists=True, dir_okay=False)
_PAIR = re.compile(r"\s*([^=,\s]+)\s*=\s*(\[[^\]]*\]|[^,]*)\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Entity:
    """The owner of settings; without a name, all of that type, or the default of brokers."""

    kind: str
    name: str | None
    default: bool = False

    @property
    def resource(self) -> int:
        """The number of its type in the protocol."""
        return TYPES[self.kind]

    def __str__(self) -> str:
        return f"{self.kind.removesuffix('s')} {self.name}"


@click.command("configs", context_settings={"help_option_names": ["-h", "--help"]})
@refusal.zookeeper_option
@target_options
@click.option("--describe", is_flag=True, help="Show settings.")
@click.option("--alter", is_flag=True, help="Change settings.")
@config_entities.options
@click.option("--all", "everything", is_flag=True, help="With --describe: also what is static or by default.")
@click.option("--add-config", metavar="NAME=VALUE,...", help="Settings to make; brackets hold commas: a=[1,2].")
@click.option("--add-config-file", type=FILE, help="A properties file with settings to make.")
@click.option("--delete-config", metavar="NAME,...", help="Settings to take back.")
@columns.output_option
@click.option("--force", is_flag=True, hidden=True)
def command(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    describe: bool,
    alter: bool,
    **flags: Any,
) -> None:
    """Show and change dynamic settings."""
    bootstrap, controllers = target(bootstrap_server, bootstrap_controller)
    if describe == alter:
        refusal.usage("Give either --describe or --alter")
    entities = config_entities.named(flags, KINDS)
    given = [name for name in ("add_config", "add_config_file", "delete_config") if flags[name] is not None]
    if alter and not given:
        refusal.usage("--alter changes nothing without --add-config, --add-config-file or --delete-config")
    if alter and (unnamed := [each.kind for each in entities if each.name is None]):
        refusal.usage("An entity-name or default entity must be specified with --alter of " + " and ".join(unnamed))
    if controllers:
        _check_controllers_answer(entities, describe)
    from tidelog.cli.controller_session import session

    with refusal.one_line("Error while executing config command: "):
        add, delete = additions(flags["add_config"], flags["add_config_file"]), _names(flags["delete_config"])
        with session(bootstrap, controllers, command_config) as connected:
            if alter:
                _change(connected, entities, add, delete)
            else:
                silent = flags["output"] == "json"
                shown = _show(connected, entities, flags["everything"], silent=silent)
                if silent:
                    print(columns.as_json(shown))


def _check_controllers_answer(entities: list[Named], describe: bool) -> None:
    """A usage error for what only brokers list."""
    kind = entities[0].kind
    if describe and kind in QUOTA_TYPES:
        refusal.usage(f"Controllers change the settings of {kind} and do not show them: give --bootstrap-server")
    if describe and entities[0].name is None and kind not in {"brokers", "broker-loggers"}:
        refusal.usage(f"Controllers do not list {kind}: name one with --entity-name, or give --bootstrap-server")


def _change(session: Session, entities: list[Named], add: dict[str, str], delete: list[str]) -> None:
    if scram_configs.are_credentials(entities, [*add, *delete]):
        scram_configs.alter(session, entities[0].name or "", add, delete)
    elif entities[0].kind in QUOTA_TYPES:
        quota_configs.alter(session, entities, add, delete)
    else:
        _alter(session, _entity(entities[0]), add, delete)


def _show(session: Session, entities: list[Named], everything: bool, *, silent: bool) -> list[columns.Row]:
    if entities[0].kind in QUOTA_TYPES:
        quotas = quota_configs.describe(session, entities, silent=silent)
        return quotas + scram_configs.describe(session, entities, silent=silent)
    return _describe(session, _entity(entities[0]), everything, silent=silent)


def _entity(named: Named) -> Entity:
    return Entity(named.kind, named.name or None, default=named.name == "")


def additions(text: str | None, path: str | None) -> dict[str, str]:
    """``a=1,b=[2,3]`` or the file. CommandFailed when it is malformed."""
    if path is not None:
        from tidelog.config.properties import parse

        return parse(refusal.text_of(path))
    result: dict[str, str] = {}
    position = 0
    while text and position < len(text):
        match = _PAIR.match(text, position)
        if match is None:
            # Not its text: that may be a part of a password.
            number, after = len(result) + 1, f" (after {[*result][-1]})" if result else ""
            raise CommandFailed(
                f"--add-config takes name=value pairs with commas between them; number {number}{after} is none. "
                "A value with commas, such as a SCRAM credential, stands in brackets."
            )
        value = match[2].strip()
        result[match[1]] = value[1:-1] if value.startswith("[") and value.endswith("]") else value
        position = match.end()
    return result


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _alter(session: Session, entity: Entity, add: dict[str, str], delete: list[str]) -> None:
    """Sends one request. CommandFailed when the broker refuses."""
    from tidelog.protocol.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    configs = [AlterableConfig(name=name, config_operation=SET, value=value) for name, value in add.items()]
    configs += [AlterableConfig(name=name, config_operation=DELETE, value=None) for name in delete]
    resource = AlterConfigsResource(resource_type=entity.resource, resource_name=entity.name or "", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    for result in session.ask(request, _changes_at(session, entity)).responses:
        refusal.check(result.error_code, result.error_message)
    if entity.default:
        print(f"Completed updating default config for {entity.kind} in the cluster.")
    else:
        print(f"Completed updating config for {entity}.")


def _changes_at(session: Session, entity: Entity) -> Node | None:
    """As ``_node_of``; the active controller for settings of brokers, which it decides for all of them."""
    from tidelog.cli.controller_session import ControllerSession

    node = _node_of(entity)
    return None if entity.resource == BROKER and isinstance(session, ControllerSession) else node


def _node_of(entity: Entity) -> Node | None:
    """The node itself for a broker entity, any for others."""
    if entity.resource not in {BROKER, BROKER_LOGGER} or entity.name is None:
        return None
    from tidelog.client.calls import Node

    if not (entity.name.isascii() and entity.name.isdecimal()):
        raise CommandFailed(f"--entity-name of {entity.kind} is a node id, a number: {entity.name} is none")
    return Node(int(entity.name))


def _describe(session: Session, entity: Entity, everything: bool, *, silent: bool) -> list[columns.Row]:
    """Prints what Kafka's tool prints, unless ``silent``; returns it as values."""
    say = (lambda _: None) if silent else print
    if entity.default:
        say("Default configs for brokers in the cluster are:")
        return [{"entityType": entity.kind, "entityName": None, "configs": _settings(session, entity, everything, say)}]
    shown: list[columns.Row] = []
    for name in [entity.name] if entity.name is not None else _all_names(session, entity):
        each = Entity(entity.kind, name)
        if each.resource == TOPIC and not _exists(session, each):
            missing = f"Topic '{name}' does not exist, so it has no settings."
            if entity.name is not None and silent:
                raise CommandFailed(missing)
            say(missing)
            if entity.name is not None:
                sys.exit(1)
            continue
        say(f"{'All' if everything else 'Dynamic'} configs for {each} are:")
        shown.append({"entityType": each.kind, "entityName": name, "configs": _settings(session, each, everything, say)})
    if entity.resource == BROKER and entity.name is None:
        shown += _describe(session, Entity("brokers", None, default=True), everything, silent=silent)
    return shown


def _exists(session: Session, topic: Entity) -> bool:
    """True at controllers, which know no topics by Metadata and refuse to describe one that is missing."""
    from tidelog.cli.admin_session import AdminSession

    return not isinstance(session, AdminSession) or not session.metadata([topic.name or ""])[0].error_code


def _all_names(session: Session, entity: Entity) -> list[str]:
    """All existing entities of that type."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.controller_session import ControllerSession
    from tidelog.protocol.messages.list_config_resources import ListConfigResourcesRequest

    if isinstance(session, ControllerSession):
        return [str(node) for node in sorted(each.broker_id for each in session.cluster.brokers)]
    assert isinstance(session, AdminSession)
    if entity.resource == TOPIC:
        return [topic.name or "" for topic in session.metadata(None)]
    if entity.resource in {BROKER, BROKER_LOGGER}:
        return [str(broker) for broker in session.brokers()]
    response = session.ask(ListConfigResourcesRequest(resource_types=[entity.resource]))
    refusal.check(response.error_code)
    names = {found.resource_name for found in response.config_resources}
    if entity.resource == GROUP:
        from tidelog.cli.tools.group_state import list_groups

        names |= {group.group_id for group in list_groups(session)}
    return sorted(names)


def _settings(session: Session, entity: Entity, everything: bool, say: Callable[[str], None]) -> list[columns.Row]:
    """A line for each setting, by name, with its source and the values it overrides; returns them as values."""
    from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    resource = DescribeConfigsResource(resource_type=entity.resource, resource_name=entity.name or "", configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    response = session.ask(request, _node_of(entity))
    own = DEFAULT_BROKER_SOURCE if entity.default else OWN_SOURCE[entity.resource]
    found: list[columns.Row] = []
    for result in response.results:
        refusal.check(result.error_code, result.error_message)
        for row in sorted(result.configs, key=lambda each: each.name):
            if everything or row.config_source == own:
                synonyms = ", ".join(
                    f"{SOURCES.get(synonym.source, 'UNKNOWN')}:{synonym.name}={_value(synonym.value)}" for synonym in row.synonyms
                )
                sensitive = str(row.is_sensitive).lower()
                say(f"  {row.name}={_value(row.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
                found.append(_as_values(row))
    return found


def _as_values(row: Any) -> columns.Row:
    synonyms = [{"source": SOURCES.get(each.source, "UNKNOWN"), "name": each.name, "value": each.value} for each in row.synonyms]
    source = SOURCES.get(row.config_source, "UNKNOWN")
    return {"name": row.name, "value": row.value, "source": source, "sensitive": row.is_sensitive, "synonyms": synonyms}


def _value(value: str | None) -> str:
    return "null" if value is None else value


def main() -> None:
    """``kafka-configs``."""
    entry.run(command, "kafka-configs")


if __name__ == "__main__":
    main()
