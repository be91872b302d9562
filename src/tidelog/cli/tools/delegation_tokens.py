"""``tidelog delegation-tokens``, also installed as ``kafka-delegation-tokens``: makes, renews, ends and lists delegation tokens.

Flags and columns are those of Kafka's tool. A token's HMAC is its password: only --create and --describe print it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.client.admin.delegation_tokens import DelegationToken

_TITLES = (
    ("TOKENID", 15),
    ("HMAC", 30),
    ("OWNER", 15),
    ("REQUESTER", 15),
    ("RENEWERS", 25),
    ("ISSUEDATE", 15),
    ("EXPIRYDATE", 15),
    ("MAXDATE", 15),
)
_YEAR_9999_MS = 253_370_764_800_000
_ACTIONS = ("create", "renew", "expire", "describe")
_PLACES = {
    "owner_principal": ("create", "describe"),
    "renewer_principal": ("create",),
    "max_life_time_period": ("create",),
    "renew_time_period": ("renew",),
    "expiry_time_period": ("expire",),
    "hmac": ("renew", "expire"),
}
"""The actions that take each flag."""


@click.command("delegation-tokens", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--create", is_flag=True, help="Make a token. It is printed with its HMAC, which is its password.")
@click.option("--renew", is_flag=True, help="Let a token end later.")
@click.option("--expire", is_flag=True, help="Let a token end sooner, or at once.")
@click.option("--describe", is_flag=True, help="List tokens, with their HMACs.")
@click.option(
    "--owner-principal",
    multiple=True,
    metavar="TYPE:NAME",
    help="With --create: the owner, if it is another user. With --describe: only tokens that this one owns or may renew.",
)
@click.option("--renewer-principal", multiple=True, metavar="TYPE:NAME", help="Who may renew and end it, too. May be repeated.")
@click.option("--max-life-time-period", type=int, metavar="MS", help="How old it may become. [-1: as old as brokers allow]")
@click.option("--renew-time-period", type=int, metavar="MS", help="How long it lasts from now. [-1: as long as brokers allow]")
@click.option("--expiry-time-period", type=int, metavar="MS", help="How long it lasts from now; -1: it ends at once.")
@click.option("--hmac", metavar="BASE64", help="The HMAC of the token.")
@columns.output_option
def command(bootstrap_server: str | None, command_config: str | None, output: str, **flags: Any) -> None:
    """Make, renew, end and list delegation tokens, with which programs log in for a user.

    They are given out only on connections that logged in: name the login in --command-config.
    """
    action = _action(flags)
    bootstrap = refusal.required(bootstrap_server)
    token_hmac = b"" if flags["hmac"] is None else _decoded(flags["hmac"])
    from tidelog.cli.admin_session import AdminSession

    with refusal.one_line("Error while executing delegation token command: "), AdminSession(bootstrap, command_config) as session:
        if action == "create":
            _create(session, flags, output)
        elif action == "describe":
            _describe(session, flags["owner_principal"], output)
        else:
            _move_end(session, action, token_hmac, flags, output)


def _action(flags: dict[str, Any]) -> str:
    """The one action. A usage error for none, for several, and for flags that do not belong to it or are missing."""
    chosen = [action for action in _ACTIONS if flags[action]]
    if len(chosen) != 1:
        refusal.usage("Give exactly one of --create, --renew, --expire, --describe.")
    (action,) = chosen
    for name, actions in _PLACES.items():
        if flags[name] not in (None, ()) and action not in actions:
            refusal.usage(f"--{name.replace('_', '-')} does not go with --{action}")
    if action in ("renew", "expire") and flags["hmac"] is None:
        refusal.usage(f"--{action} needs --hmac")
    if action == "expire" and flags["expiry_time_period"] is None:
        refusal.usage("--expire needs --expiry-time-period; -1 ends the token at once")
    if action == "create" and len(flags["owner_principal"]) > 1:
        refusal.usage("A token has one owner: give --owner-principal once")
    return action


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        refusal.usage("--hmac is not base64; copy it from --create or --describe")


def _create(session: AdminSession, flags: dict[str, Any], output: str) -> None:
    from tidelog.client.admin import delegation_tokens

    owner = flags["owner_principal"][0] if flags["owner_principal"] else None
    lifetime_ms = -1 if flags["max_life_time_period"] is None else flags["max_life_time_period"]
    token = session.run(delegation_tokens.create(flags["renewer_principal"], owner=owner, max_lifetime_ms=lifetime_ms))
    if output == "json":
        print(columns.as_json(_row(token)))
        return
    print(f"Created delegation token with tokenId : {token.token_id}")
    print(_table([token]))


def _describe(session: AdminSession, owners: tuple[str, ...], output: str) -> None:
    from tidelog.client.admin import delegation_tokens

    tokens = session.run(delegation_tokens.describe(owners or None))
    if output == "json":
        print(columns.as_json([_row(each) for each in tokens]))
        return
    print(f"Total number of tokens : {len(tokens)}")
    print(_table(tokens))


def _move_end(session: AdminSession, action: str, token_hmac: bytes, flags: dict[str, Any], output: str) -> None:
    from tidelog.client.admin import delegation_tokens

    if action == "renew":
        period_ms = -1 if flags["renew_time_period"] is None else flags["renew_time_period"]
        ends_ms = session.run(delegation_tokens.renew(token_hmac, period_ms))
    else:
        ends_ms = session.run(delegation_tokens.expire(token_hmac, flags["expiry_time_period"]))
    if output == "json":
        print(columns.as_json({"expiresMs": ends_ms}))
        return
    print(f"Completed {action} operation. Expiry date : {_date(ends_ms)}")


def _table(tokens: Iterable[DelegationToken]) -> str:
    """Kafka's table: an empty line before each line."""
    lines = [[title for title, _ in _TITLES]]
    lines += [
        [
            each.token_id,
            each.password,
            each.owner,
            each.requester,
            f"[{', '.join(each.renewers)}]",
            _date(each.issued_ms),
            _date(each.expires_ms),
            _date(each.max_ms),
        ]
        for each in tokens
    ]
    widths = [width for _, width in _TITLES]
    return "\n".join("\n" + " ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines)


def _row(token: DelegationToken) -> columns.Row:
    return {
        "tokenId": token.token_id,
        "hmac": token.password,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issuedMs": token.issued_ms,
        "expiresMs": token.expires_ms,
        "maxMs": token.max_ms,
    }


def _date(time_ms: int) -> str:
    """In local time, to the minute; ``-`` for a time after the year 9999, which is as good as never."""
    if time_ms >= _YEAR_9999_MS:
        return "-"
    return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%Y-%m-%dT%H:%M")


def main() -> None:
    """``kafka-delegation-tokens``."""
    entry.run(command, "kafka-delegation-tokens")


if __name__ == "__main__":
    main()
