"""``tidelog acls``, also installed as ``kafka-acls``: adds, removes, lists, explains and suggests ACLs, with the flags of Kafka's
tool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option, target, target_options

if TYPE_CHECKING:
    from tidelog.cli.broker_connection import Session
    from tidelog.cli.tools.acl_choice import Pattern, Wanted

F = TypeVar("F", bound=Callable[..., Any])
PATTERN_TYPES = ("literal", "prefixed", "any", "match")


def _named(flag: str, what: str) -> Callable[[F], F]:
    return click.option(f"--{flag}", multiple=True, metavar="NAME", help=f"{what}; '*' is all of them. May be repeated.")


@click.group("acls", invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@target_options
@click.option("--add", is_flag=True, help="Add ACLs.")
@click.option("--remove", is_flag=True, help="Remove ACLs.")
@click.option("--list", "list_", is_flag=True, help="List ACLs.")
@_named("topic", "A topic")
@_named("group", "A group")
@click.option("--cluster", is_flag=True, help="The cluster.")
@_named("transactional-id", "A transactional id")
@_named("delegation-token", "A delegation token")
@_named("user-principal", "A user, for operations on the tokens of others; or Role:NAME, for the members of a role")
@click.option(
    "--resource-pattern-type",
    "pattern_type",
    type=click.Choice(PATTERN_TYPES, case_sensitive=False),
    default="literal",
    show_default=True,
    help="How names are meant. any and match find ACLs: of either type with that name; all that apply to the name.",
)
@click.option("--operation", "operations", multiple=True, metavar="NAME", help="What is allowed or denied, such as Read. [All]")
@click.option("--allow-principal", multiple=True, metavar="TYPE:NAME", help="Who may; User:'*' is every user.")
@click.option("--deny-principal", multiple=True, metavar="TYPE:NAME", help="Who may not, whatever else allows it.")
@click.option("--allow-host", multiple=True, metavar="ADDRESS", help="From where, for --allow-principal. [anywhere]")
@click.option("--deny-host", multiple=True, metavar="ADDRESS", help="From where, for --deny-principal. [anywhere]")
@click.option("--principal", multiple=True, metavar="TYPE:NAME", help="With --list: only the ACLs of this principal.")
@click.option("--producer", is_flag=True, help="What a producer needs: Write, Describe and Create on the topic.")
@click.option("--consumer", is_flag=True, help="What a consumer needs: Read and Describe on the topic, Read on the group.")
@click.option("--idempotent", is_flag=True, help="With --producer: IdempotentWrite on the cluster, too.")
@click.option("--force", is_flag=True, help="Remove without a question.")
@columns.output_option
@click.pass_context
def command(ctx: click.Context, /, **flags: Any) -> None:
    """Add, remove and list ACLs. `tidelog acls explain` says why a client may or may not, `suggest` which ACLs it needs."""
    if ctx.invoked_subcommand is not None:
        ctx.obj = flags["bootstrap_server"], flags["bootstrap_controller"], flags["command_config"]
        return
    if flags["add"] + flags["remove"] + flags["list_"] != 1:
        refusal.usage("Give exactly one of --add, --remove, --list.")
    bootstrap, controllers = target(flags["bootstrap_server"], flags["bootstrap_controller"])
    from tidelog.cli.controller_session import session
    from tidelog.cli.tools import acl_choice
    from tidelog.model.acl import PatternType

    given = {f"--{name.replace('_', '-')}": bool(value) for name, value in flags.items()} | {
        "--operation": bool(flags["operations"])
    }
    roles = {name: flags[name] for name in ("producer", "consumer", "idempotent")}
    acl_choice.check_flags(listing=flags["list_"], given=given, **roles)
    with refusal.one_line("Error while executing ACL command: "):
        names = {kind: flags[flag.replace("-", "_")] for kind, flag in acl_choice.FLAGS.items() if flag != "cluster"}
        pattern_type = PatternType[flags["pattern_type"].upper()]
        chosen = acl_choice.patterns(names, flags["cluster"] or flags["idempotent"], pattern_type)
        if flags["list_"]:
            with session(bootstrap, controllers, flags["command_config"]) as connected:
                _list(connected, chosen, flags["principal"], flags["output"])
            return
        if not chosen:
            refusal.usage(f"Name at least one resource: {', '.join(f'--{flag}' for flag in acl_choice.FLAGS.values())}")
        wanted = acl_choice.wanted(
            chosen,
            [acl_choice.operation_of(each) for each in flags["operations"] or ("all",)],
            (flags["allow_principal"], flags["allow_host"]),
            (flags["deny_principal"], flags["deny_host"]),
            **roles,
        )
        if flags["add"] and flags["pattern_type"] in ("any", "match"):
            refusal.usage(f"--resource-pattern-type {flags['pattern_type']} finds ACLs; add them as literal or prefixed")
        if flags["add"] and not all(wanted.values()):
            refusal.usage("Say who may or may not: --allow-principal or --deny-principal")
        with session(bootstrap, controllers, flags["command_config"]) as connected:
            if flags["add"]:
                _add(connected, wanted)
            else:
                _remove(connected, wanted, flags["force"])


def _add(connected: Session, wanted: Wanted) -> None:
    from tidelog.cli.refusal import CommandFailed, error_text
    from tidelog.cli.tools.acl_choice import entries, filters
    from tidelog.client.admin import acls

    for pattern, rules in wanted.items():
        (everything,) = filters(pattern, ())
        known = set(connected.run(acls.describe(everything)))
        new = [each for each in entries({pattern: rules}) if each not in known]
        for each in entries({pattern: rules}):
            if each in known:
                print(f"Acl {_binding(each)} already exists.")
        if not new:
            continue
        print(f"Adding ACLs for resource `{pattern}`: \n {_lines(new)}\n")
        for error in connected.run(acls.create(new)).values():
            raise CommandFailed(error_text(error.code, error.detail))


def _remove(connected: Session, wanted: Wanted, force: bool) -> None:
    from tidelog.cli.tools.acl_choice import filters
    from tidelog.client.admin import acls

    for pattern, rules in wanted.items():
        listed = "\n".join(f"\t{rule}" for rule in rules) or "\tall of them"
        question = f"Remove these ACLs of `{pattern}`? (y/n)\n{listed}"
        if force or _confirmed(question):
            connected.run(acls.delete(filters(pattern, rules)))


def _confirmed(question: str) -> bool:
    print(question)
    return sys.stdin.readline().strip().lower() == "y"


def _list(connected: Session, chosen: list[Pattern], principals: tuple[str, ...], output: str) -> None:
    from tidelog.cli.tools.acl_choice import filters, pattern_of
    from tidelog.client.admin import acls
    from tidelog.model.acl_filter import AclFilter

    asked = [each for pattern in chosen for each in filters(pattern, ())] or [AclFilter()]
    found = {each: None for wanted in asked for each in connected.run(acls.describe(wanted))}
    ordered = sorted(found, key=lambda each: (pattern_of(each), each.principal, each.host, each.operation, each.permission_type))
    if output == "json":
        rows = [_row(each) for each in ordered if not principals or each.principal in principals]
        print(columns.as_json(rows))
        return
    for principal in principals or ("",):
        if principal:
            print(f"ACLs for principal `{principal}`")
        groups: dict[Pattern, list[Any]] = {}
        for each in ordered:
            if not principal or each.principal == principal:
                groups.setdefault(pattern_of(each), []).append(each)
        for pattern, group in groups.items():
            print(f"Current ACLs for resource `{pattern}`:\n{_lines(group)}\n")


def _lines(group: Iterable[Any]) -> str:
    from tidelog.cli.tools.acl_choice import rule_of

    return "\n".join(f"\t{rule_of(each)}" for each in group)


def _binding(each: Any) -> str:
    from tidelog.cli.tools.acl_choice import pattern_of, rule_of

    return f"(pattern={pattern_of(each)}, entry={rule_of(each)})"


def _row(each: Any) -> columns.Row:
    from tidelog.cli.tools.acl_choice import pattern_of, rule_of

    pattern, rule = pattern_of(each), rule_of(each)
    return {
        "resourceType": pattern.resource_type.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation.name,
        "permissionType": rule.permission.name,
    }


@command.command()
@bootstrap_option
@command_config_option
@click.argument("principal")
@click.argument("operation")
@click.argument("resource")
@click.option("--host", metavar="ADDRESS", help="The client's address. [one that no ACL names]")
@click.option("--in-group", "groups", multiple=True, metavar="NAME", help="A group that the client's token or certificate names.")
@click.pass_obj
def explain(
    flags: tuple[str | None, str | None, str | None],
    bootstrap_server: str | None,
    command_config: str | None,
    principal: str,
    operation: str,
    resource: str,
    host: str | None,
    groups: tuple[str, ...],
) -> None:
    """Say which rule lets PRINCIPAL do OPERATION on RESOURCE, or which one is missing.

    PRINCIPAL is User:NAME, Group:NAME or Role:NAME. RESOURCE is topic:NAME, group:NAME, cluster, transactional-id:NAME,
    delegation-token:ID or user-principal:User:NAME.
    """
    bootstrap, controllers = target(flags[0] or (None if flags[1] else bootstrap_server), flags[1])
    from tidelog.cli.controller_session import session
    from tidelog.cli.tools import acl_explanation as explanation

    with refusal.one_line("Error while executing ACL command: "):
        question = explanation.question_of(principal, operation, resource, host, groups)
        config = flags[2] or command_config
        connection = ["--bootstrap-controller" if controllers else "--bootstrap-server", bootstrap]
        connection += ["--command-config", config] if config else []
        with session(bootstrap, controllers, config) as connected:
            for line in explanation.explained(connected.run(explanation.knowledge()), question, connection):
                print(line)


@command.command()
@bootstrap_option
@command_config_option
@click.argument("principal")
@click.option(
    "--audit",
    "files",
    multiple=True,
    required=True,
    type=click.File(encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="Lines of the audit; - is standard input. Once for each file of each node.",
)
@click.option("--hosts", is_flag=True, help="Allow it only from the addresses that it came from.")
@click.option("--denied", is_flag=True, help="Allow also what it was denied.")
@click.pass_obj
def suggest(
    flags: tuple[str | None, str | None, str | None],
    bootstrap_server: str | None,
    command_config: str | None,
    principal: str,
    files: tuple[TextIO, ...],
    hosts: bool,
    denied: bool,
) -> None:
    """Print the ACLs that allow what PRINCIPAL did, by the lines of the audit, and those that it never used.

    PRINCIPAL is User:NAME. Without --bootstrap-server no cluster is asked for the ACLs that there are.
    """
    from itertools import chain

    from tidelog.cli.controller_session import session
    from tidelog.cli.tools import acl_suggestion
    from tidelog.cli.tools.acl_choice import principal_of
    from tidelog.client.admin import acls

    with refusal.one_line("Error while executing ACL command: "):
        done = acl_suggestion.read(chain.from_iterable(files), principal_of(principal))
        address = flags[0] or flags[1] or bootstrap_server
        existing, connection = None, list[str]()
        if address:
            config = flags[2] or command_config
            connection = ["--bootstrap-controller" if flags[1] else "--bootstrap-server", address]
            connection += ["--command-config", config] if config else []
            with session(address, bool(flags[1]), config) as connected:
                existing = connected.run(acls.describe())
        for line in acl_suggestion.suggestion(done, principal, existing, connection, with_hosts=hosts, with_denied=denied):
            print(line)


def main() -> None:
    """``kafka-acls``."""
    entry.run(command, "kafka-acls")


if __name__ == "__main__":
    main()
