"""Transactions, ACLs, users and quotas: what belongs to the cluster, not to a topic or a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidelog.client.admin import acls as acl_calls
from tidelog.client.admin import quotas as quota_calls
from tidelog.client.admin import transactions as transaction_calls
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.acl_rows import FIELDS, as_row, described, entry_of
from tidelog.console.asking.groups import by_topic
from tidelog.console.asking.plans import Plan, PlanRow
from tidelog.console.asking.producers import scram_users
from tidelog.console.web.context import Context
from tidelog.console.web.routing import Route
from tidelog.console.web.values import Param, flag, listed, optional, text
from tidelog.model.acl import AccessControlEntry
from tidelog.model.acl_filter import AclFilter
from tidelog.model.errors import ErrorCode, KafkaError

MOST_ACLS: Final = 200


async def transactions(context: Context) -> list[dict[str, Any]]:
    """All transactional ids with their states."""
    rows = await context.cluster.run(transaction_calls.list_all())
    return [
        {"id": each.transactional_id, "producer_id": str(each.producer_id), "state": each.state, "coordinator": each.coordinator}
        for each in sorted(rows, key=lambda row: row.transactional_id)
    ]


async def transaction(context: Context) -> dict[str, Any]:
    """One transactional id with what it has open."""
    found = await context.cluster.run(transaction_calls.describe(context.query["id"]))
    return {
        "id": found.transactional_id,
        "producer_id": str(found.producer_id),
        "producer_epoch": found.producer_epoch,
        "state": found.state,
        "coordinator": found.coordinator,
        "timeout_ms": str(found.timeout_ms),
        "started_ms": None if found.started_ms is None else str(found.started_ms),
        "partitions": by_topic(found.partitions),
        "may": context.may(About.CLUSTER),
    }


async def terminate(context: Context) -> dict[str, Any]:
    """Fence the producer of a transactional id; what it has open is aborted."""
    cluster, name = context.cluster, context.body["id"]
    found = await cluster.run(transaction_calls.describe(name))
    context.confirmed(name)
    if not context.dry_run:
        await cluster.run(transaction_calls.force_terminate(name))
        cluster.shared.forget()
    plan = Plan(
        f"Terminate {name}",
        (PlanRow(name, found.state, "aborted" if found.partitions else "fenced"),),
        (f"what it has written to {len(found.partitions)} partitions",) if found.partitions else (),
        ("a producer with this id that runs is fenced: it fails with its next request",),
        cluster.commands.terminate(name),
        name,
    )
    return (plan if context.dry_run else plan.carried_out()).as_json()


# -- ACLs -------------------------------------------------------------------------------------------------------------------


async def acls(context: Context) -> dict[str, Any]:
    """All ACLs; not enabled on a cluster without an authorizer."""
    try:
        rows = await context.cluster.run(acl_calls.describe())
    except KafkaError as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        return {"enabled": False, "rows": []}
    found = [as_row(each) for each in rows]
    return {"enabled": True, "rows": sorted(found, key=lambda row: tuple(row[name] for name in FIELDS))}


async def create_acls(context: Context) -> dict[str, Any]:
    """Add ACLs; those that are there already stay."""
    cluster, entries = context.cluster, context.body["entries"]
    there = set(await cluster.run(acl_calls.describe()))
    failed: Mapping[AccessControlEntry, KafkaError] = {}
    if not context.dry_run:
        failed = await cluster.run(acl_calls.create(entries))
    rows = tuple(
        PlanRow(described(each), "there already" if each in there else None, "stays" if each in there else "added")
        for each in entries
    )
    return _acl_result(context, Plan("Add ACLs", rows, command=_commands(context, "--add")), failed)


async def delete_acls(context: Context) -> dict[str, Any]:
    """Remove exactly these ACLs."""
    cluster, entries = context.cluster, context.body["entries"]
    there = set(await cluster.run(acl_calls.describe()))
    if not context.dry_run:
        await cluster.run(acl_calls.delete([_exactly(each) for each in entries]))
    rows = tuple(
        PlanRow(described(each), "there" if each in there else None, "removed" if each in there else "is not there")
        for each in entries
    )
    return _acl_result(context, Plan("Remove ACLs", rows, command=_commands(context, "--remove")), {})


def _exactly(entry: AccessControlEntry) -> AclFilter:
    return AclFilter(
        entry.resource_type,
        entry.resource_name,
        entry.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def _commands(context: Context, action: str) -> str | None:
    """One line for all of them; None when the tool has no flag for one."""
    lines = [context.cluster.commands.acl(action, each) for each in context.body["entries"]]
    known = [each for each in lines if each is not None]
    return " && ".join(known) if len(known) == len(lines) else None


def _acl_result(context: Context, plan: Plan, failed: Mapping[AccessControlEntry, KafkaError]) -> dict[str, Any]:
    if context.dry_run:
        return plan.as_json()
    return plan.carried_out(tuple((described(entry), str(error)) for entry, error in failed.items())).as_json()


# -- users and quotas -------------------------------------------------------------------------------------------------------


async def users(context: Context) -> list[dict[str, Any]]:
    """Users with SCRAM credentials."""
    return await context.cluster.run(scram_users())


async def quotas(context: Context) -> list[dict[str, Any]]:
    """The quotas of users, client ids and addresses."""
    rows = await context.cluster.run(quota_calls.describe())
    return [{"entity": each.entity, "limits": each.limits} for each in rows]


_CLUSTER: Final = "clusters/{c}/"
_ID: Final = Param(text(1000, least=1), required=True)
_DRY_RUN: Final = {"dry_run": Param(flag, required=True)}


def _entry(found: Any) -> AccessControlEntry:
    if not isinstance(found, dict):
        raise ValueError("an ACL is an object")
    for each in found.values():
        text()(each)
    return entry_of(found)


_ENTRIES: Final = {"entries": Param(listed(_entry, MOST_ACLS, least=1), required=True), **_DRY_RUN}
ROUTES: Final = (
    Route("GET", _CLUSTER + "transactions", transactions, Right.VIEW, About.CLUSTER),
    Route("GET", _CLUSTER + "transaction", transaction, Right.VIEW, About.CLUSTER, query={"id": _ID}),
    Route(
        "POST",
        _CLUSTER + "transaction/terminate",
        terminate,
        Right.CHANGE,
        About.CLUSTER,
        body={"id": _ID, "confirm": Param(optional(text(1000)), None), **_DRY_RUN},
    ),
    Route("GET", _CLUSTER + "acls", acls, Right.VIEW, About.CLUSTER),
    Route("POST", _CLUSTER + "acls", create_acls, Right.CHANGE, About.CLUSTER, body=_ENTRIES, largest_body=1 << 20),
    Route("POST", _CLUSTER + "acls/delete", delete_acls, Right.CHANGE, About.CLUSTER, body=_ENTRIES, largest_body=1 << 20),
    Route("GET", _CLUSTER + "users", users, Right.VIEW, About.CLUSTER),
    Route("GET", _CLUSTER + "quotas", quotas, Right.VIEW, About.CLUSTER),
)
