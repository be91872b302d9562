"""Changes of topics: created, deleted, given partitions, configured, emptied, written to. Each has a preview."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from tidelog.client.admin import configs as config_calls
from tidelog.client.admin import topics as topic_calls
from tidelog.client.admin.results import ResourceType
from tidelog.client.partitioning import partition_of
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.changes import NOT_WRITTEN, delete_records, produce
from tidelog.console.asking.configs import Setting, settings
from tidelog.console.asking.plans import Plan, PlanRow
from tidelog.console.payloads import exact_json
from tidelog.console.reading.fetching import Bounds
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem
from tidelog.console.web.routing import Route
from tidelog.console.web.topic_pages import known_topic, partition_bounds, topic_groups
from tidelog.console.web.values import Param, fields, flag, listed, mapping, number, one_of, optional, text, topic_name
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.records.builder import RecordData

MOST_PARTITIONS: Final = 100_000
SHOWN_GROUPS: Final = 5
PREVIEWED_BYTES: Final = 200
END: Final = "end"
PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
"""Between attempts of a change whose partition's leader is not ready."""
_DRY_RUN: Final = {"dry_run": Param(flag, required=True)}
_CONFIRM: Final = {"confirm": Param(optional(text(1000)), None)}


async def create(context: Context) -> dict[str, Any]:
    """A new topic; the preview is the broker's own validation."""
    cluster, body = context.cluster, context.body
    name, partitions, replication, given = body["name"], body["partitions"], body["replication"], body["configs"]
    await cluster.run(
        topic_calls.create(
            name,
            -1 if partitions is None else partitions,
            -1 if replication is None else replication,
            given,
            validate_only=context.dry_run,
        )
    )
    plan = Plan(
        f"Create topic {name}",
        (
            PlanRow("partitions", None, "as the brokers' default" if partitions is None else str(partitions)),
            PlanRow("replication factor", None, "as the brokers' default" if replication is None else str(replication)),
            *(PlanRow(key, None, value) for key, value in given.items()),
        ),
        command=cluster.commands.create_topic(name, partitions, replication, given),
    )
    return context.result(plan)


async def delete(context: Context) -> dict[str, Any]:
    """A topic with its records is gone for ever."""
    cluster, found = context.cluster, await known_topic(context)
    plan, _ = await _losing(context, "Delete topic", {part.index: None for part in found.partitions})
    context.confirmed(found.name)
    if not context.dry_run:
        await cluster.run(topic_calls.delete(found.name))
    return context.result(
        Plan(
            plan.title,
            (PlanRow(found.name, f"{len(found.partitions)} partitions", "gone"),),
            plan.lost,
            plan.warnings,
            cluster.commands.delete_topic(found.name),
            found.name,
        ),
    )


async def truncate(context: Context) -> dict[str, Any]:
    """Delete the records before an offset of each partition."""
    cluster, found = context.cluster, await known_topic(context)
    given: Mapping[int, int | str] = context.body["before"]
    wanted = {index: None if offset == END else int(offset) for index, offset in given.items()}
    unknown = sorted(set(wanted) - {part.index for part in found.partitions})
    if unknown or not wanted:
        raise Problem(400, f"before: {found.name} has no partition {unknown[0]}" if unknown else "before: name a partition")
    plan, before = await _losing(context, "Delete records of", wanted)
    context.confirmed(found.name)
    failed = {} if context.dry_run else await _deleted(cluster, found.name, before)
    plan = Plan(
        plan.title,
        plan.rows,
        plan.lost,
        plan.warnings,
        cluster.commands.delete_records(found.name, before),
        found.name,
        tuple((f"{found.name}-{index}", f"{error.name}: {error.text}") for index, error in failed.items()),
    )
    return context.result(plan)


async def _deleted(cluster: Cluster, topic: str, before: Mapping[int, int]) -> dict[int, ErrorCode]:
    """Errors by partition. Partitions whose leader is not ready yet are asked again."""
    failed = await cluster.run(delete_records(topic, before))
    for pause_s in PAUSES_S:
        again = {index: before[index] for index, error in failed.items() if error in NOT_WRITTEN}
        if not again:
            break
        await asyncio.sleep(pause_s)
        failed = {index: error for index, error in failed.items() if index not in again} | await cluster.run(
            delete_records(topic, again)
        )
    return failed


async def _losing(context: Context, what: str, before: Mapping[int, int | None]) -> tuple[Plan, dict[int, int]]:
    """The records that are lost, and the groups that have something to do with them. ``before`` None: up to the end."""
    found = await known_topic(context)
    context.cluster.shared.forget()
    limits = await partition_bounds(context.cluster, [found])
    rows: list[PlanRow] = []
    ends: dict[int, int] = {}
    lost = 0
    for index, offset in sorted(before.items()):
        bounds = limits.get((found.name, index), Bounds())
        if bounds.start is None or bounds.end is None:
            raise Problem(503, f"the offsets of {found.name}-{index} cannot be read: {bounds.error}")
        wanted = bounds.end if offset is None else min(max(offset, bounds.start), bounds.end)
        ends[index] = wanted
        lost += wanted - bounds.start
        rows.append(PlanRow(f"{found.name}-{index}", str(bounds.start), str(wanted), f"{wanted - bounds.start} records"))
    groups = (await topic_groups(context)).data
    names = ", ".join(each["id"] for each in groups[:SHOWN_GROUPS]) + (
        f" and {len(groups) - SHOWN_GROUPS} more" if len(groups) > SHOWN_GROUPS else ""
    )
    alive = [each["id"] for each in groups if each["state"] not in ("Empty", "Dead")]
    losses = [f"{lost} records in {len(ends)} partitions"] if lost else []
    losses += [f"where {len(groups)} groups are: {names}"] if groups else []
    warnings = tuple(f"members of {each} read it now" for each in alive[:SHOWN_GROUPS])
    return Plan(f"{what} {found.name}", tuple(rows), tuple(losses), warnings), ends


async def add_partitions(context: Context) -> dict[str, Any]:
    """More partitions; fewer are not possible."""
    cluster, found, count = context.cluster, await known_topic(context), context.body["count"]
    now = len(found.partitions)
    if count <= now:
        raise Problem(400, f"{found.name} has {now} partitions; partitions can only be added")
    if not context.dry_run:
        await cluster.run(topic_calls.create_partitions(found.name, count))
    plan = Plan(
        f"Add partitions to {found.name}",
        (PlanRow("partitions", str(now), str(count)),),
        warnings=("records with a key go to other partitions from then on: the order of a key's records ends there",),
        command=cluster.commands.add_partitions(found.name, count),
    )
    return context.result(plan)


async def alter_config(context: Context) -> dict[str, Any]:
    """Settings set and removed in one step. Problem (409) when what the page showed is not so any more."""
    cluster, name, body = context.cluster, context.segments["t"], context.body
    change: dict[str, str] = body["set"]
    remove: list[str] = body["remove"]
    if not change and not remove:
        raise Problem(400, "there is nothing to set or to remove")
    if set(change) & set(remove):
        raise Problem(400, f"{sorted(set(change) & set(remove))[0]} is both set and removed")
    now = {each.name: each for each in await cluster.run(settings(ResourceType.TOPIC, name))}
    for key, shown in (body["expect"] or {}).items():
        if key in now and now[key].value != shown:
            raise Problem(409, f"{key} is {now[key].value} by now, not {shown}: load the page again")
    await cluster.run(config_calls.alter(ResourceType.TOPIC, name, change, remove, validate_only=context.dry_run))
    plan = Plan(
        f"Change settings of {name}",
        (
            *(PlanRow(key, _value(now.get(key)), value) for key, value in change.items()),
            *(PlanRow(key, _value(now.get(key)), _default(now.get(key)), "back to its default") for key in remove),
        ),
        command=cluster.commands.alter_topic(name, change, remove),
    )
    return context.result(plan)


def _value(found: Setting | None) -> str | None:
    return None if found is None else found.value


def _default(found: Setting | None) -> str | None:
    return None if found is None else found.default


# -- produce ----------------------------------------------------------------------------------------------------------------


async def write(context: Context) -> dict[str, Any]:
    """One record. Where its outcome is not known, it is not sent again, and the answer says so."""
    cluster, body = context.cluster, context.body
    found = await known_topic(context)
    key, value = _bytes(body["key"], "key"), _bytes(body["value"], "value")
    headers = tuple((each["name"], _bytes(each["value"], f"header {each['name']}")) for each in body["headers"])
    size = len(key or b"") + len(value or b"") + sum(len(name) + len(data or b"") for name, data in headers)
    if size > context.state.limits.produce_bytes:
        raise Problem(413, f"the record has {size} bytes; the console writes {context.state.limits.produce_bytes} at most")
    partition = body["partition"]
    if partition is None:
        partition = partition_of(key, len(found.partitions)) if key is not None else _shortest(found.partitions)
    if partition not in {part.index for part in found.partitions}:
        raise Problem(400, f"{found.name} has no partition {partition}")
    timestamp = context.state.now_ms() if body["timestamp_ms"] is None else body["timestamp_ms"]
    offset: int | None = None
    if not context.dry_run:
        offset = await _written(cluster, found.name, partition, RecordData(key, value, timestamp, headers))
    plain = body["key"] is None and not headers and body["value"] is not None and body["value"]["encoding"] in ("text", "json")
    plan = Plan(
        f"Write a record to {found.name}",
        (
            PlanRow("partition", None, str(partition)),
            PlanRow("key", None, _preview(key)),
            PlanRow("value", None, _preview(value)),
            PlanRow("headers", None, str(len(headers))),
            PlanRow("size", None, f"{size} bytes"),
        ),
        command=cluster.commands.produce(found.name, body["value"]["data"]) if plain else None,
    )
    return {**context.result(plan), "partition": partition, "offset": None if offset is None else str(offset)}


async def _written(cluster: Cluster, topic: str, partition: int, record: RecordData) -> int:
    """The record's offset. It is sent again after a refusal without effect."""
    for pause_s in PAUSES_S:
        try:
            return await cluster.run(produce(topic, partition, record))
        except KafkaError as error:
            if error.code not in NOT_WRITTEN:
                raise
        await asyncio.sleep(pause_s)
    return await cluster.run(produce(topic, partition, record))


def _shortest(partitions: Any) -> int:
    """A partition with a leader; without a key any will do."""
    led = [part.index for part in partitions if part.leader is not None]
    return led[0] if led else 0


def _bytes(found: Mapping[str, str] | None, what: str) -> bytes | None:
    if found is None:
        return None
    data, encoding = found["data"], found["encoding"]
    try:
        if encoding == "hex":
            return bytes.fromhex(data)
        if encoding == "base64":
            return base64.b64decode(data, validate=True)
        if encoding == "json":
            exact_json.loads(data)
        return data.encode("utf-8")
    except (ValueError, binascii.Error) as error:
        raise Problem(400, f"{what}: this is not {encoding}: {error}") from None


def _preview(data: bytes | None) -> str | None:
    if data is None:
        return None
    shown = data[:PREVIEWED_BYTES].decode("utf-8", "replace")
    return shown + ("..." if len(data) > PREVIEWED_BYTES else "")


def _offset_or_end(found: Any) -> int | str:
    if found == END:
        return END
    offset: int = number(0)(found)
    return offset


_BYTES: Final = optional(
    fields(
        encoding=Param(one_of(("text", "json", "hex", "base64")), required=True),
        data=Param(text(2_000_000), required=True),
    )
)
_TOPICS: Final = "clusters/{c}/topics"
_ONE: Final = _TOPICS + "/{t}"
ROUTES: Final = (
    Route(
        "POST",
        _TOPICS,
        create,
        Right.CHANGE,
        About.TOPIC,
        "name",
        body={
            "name": Param(topic_name, required=True),
            "partitions": Param(optional(number(1, MOST_PARTITIONS)), None),
            "replication": Param(optional(number(1, 32_767)), None),
            "configs": Param(mapping(text(200, least=1), text(10_000), 100), {}),
            **_DRY_RUN,
        },
    ),
    Route("POST", _ONE + "/delete", delete, Right.CHANGE, About.TOPIC, "t", body={**_CONFIRM, **_DRY_RUN}),
    Route(
        "POST",
        _ONE + "/partitions",
        add_partitions,
        Right.CHANGE,
        About.TOPIC,
        "t",
        body={"count": Param(number(1, MOST_PARTITIONS), required=True), **_DRY_RUN},
    ),
    Route(
        "POST",
        _ONE + "/config",
        alter_config,
        Right.CHANGE,
        About.TOPIC,
        "t",
        body={
            "set": Param(mapping(text(200, least=1), text(10_000), 100), {}),
            "remove": Param(listed(text(200, least=1), 100), []),
            "expect": Param(optional(mapping(text(200), optional(text(10_000)), 100)), None),
            **_DRY_RUN,
        },
    ),
    Route(
        "POST",
        _ONE + "/truncate",
        truncate,
        Right.CHANGE,
        About.TOPIC,
        "t",
        body={
            "before": Param(mapping(number(0, MOST_PARTITIONS), _offset_or_end, 10_000), required=True),
            **_CONFIRM,
            **_DRY_RUN,
        },
    ),
    Route(
        "POST",
        _ONE + "/records",
        write,
        Right.CHANGE,
        About.TOPIC,
        "t",
        body={
            "partition": Param(optional(number(0, MOST_PARTITIONS)), None),
            "key": Param(_BYTES, None),
            "value": Param(_BYTES, None),
            "headers": Param(listed(fields(name=Param(text(1000), required=True), value=Param(_BYTES, None)), 100), []),
            "timestamp_ms": Param(optional(number(0)), None),
            **_DRY_RUN,
        },
        largest_body=6 << 20,
    ),
)
