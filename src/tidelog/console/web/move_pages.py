"""Replicas that move: what is under way; plans to balance, to drain, and for another replication factor; stopped, cancelled."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from tidelog.client.admin import replicas
from tidelog.client.calls import Partition
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.overview import overview
from tidelog.console.asking.plans import Plan, PlanRow
from tidelog.console.moving.asking import BrokerState, broker_states, cordon, layout, under_way, unlimit
from tidelog.console.moving.balance_plan import CannotPlan, Move
from tidelog.console.moving.layout import Layout
from tidelog.console.moving.planning import balanced, drained, with_factor
from tidelog.console.moving.preview import MOST_ROWS, rows_of
from tidelog.console.quoting import word
from tidelog.console.sizes import size_text
from tidelog.console.web.answers import Answer
from tidelog.console.web.cluster_pages import disks
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Context
from tidelog.console.web.mover import Order
from tidelog.console.web.problems import Problem, error_text
from tidelog.console.web.routing import Route
from tidelog.console.web.values import Param, flag, listed, number, optional, text, topic_name
from tidelog.model.errors import KafkaError

STATES_MS: Final = 5_000
MOST_COMMAND: Final = 8_000
"""Characters of a command that is shown."""
MOST_BROKERS: Final = 10_000
THROTTLE: Final = 50 << 20
CONCURRENT: Final = 10


async def moves(context: Context) -> Answer:
    """The reassignments in progress, the plan that the console carries out, limits, and brokers that take no new replicas."""
    cluster = context.cluster
    there, _ = await cluster.overview()
    now = await cluster.run(under_way())
    dirs, partial = await disks(cluster)
    kept = await cluster.shared.get("moves", STATES_MS, lambda: cluster.run(broker_states(list(there.brokers))))
    states: Mapping[int, BrokerState] = kept.value

    def row(at: Partition) -> dict[str, Any]:
        topic, index = at
        each = now[at]
        held = {broker: dir_.replicas[at] for broker, found in dirs.items() for dir_ in found if at in dir_.replicas}
        whole = max((size for broker, size in held.items() if broker not in each.adding), default=None)
        copied = sum(min(held.get(broker, 0), whole or 0) for broker in each.adding)
        return {
            "topic": topic,
            "partition": index,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
            "bytes": None if whole is None else str(whole * len(each.adding)),
            "copied": None if whole is None else str(copied),
        }

    return Answer(
        {
            "rows": [row(at) for at in sorted(now)],
            "plan": cluster.mover.status(),
            "limits": [{"broker": broker, "rate": str(rate)} for broker, (rate, _) in states.items() if rate is not None],
            "cordoned": [broker for broker, (_, closed) in states.items() if closed],
            "may": context.may(About.CLUSTER),
        },
        None,
        partial,
    )


# -- plans ------------------------------------------------------------------------------------------------------------------


async def rebalance(context: Context) -> dict[str, Any]:
    """Spread replicas, bytes and leaders."""
    chosen: Sequence[int] | None = context.body["brokers"]
    tolerance = context.body["tolerance"]

    def command(words: list[str]) -> str:
        listed = [] if chosen is None else ["--broker-list", ",".join(map(str, chosen))]
        return context.cluster.commands.line("rebalance", *listed, "--tolerance", str(tolerance), *words)

    key = ("rebalance", tuple(chosen or ()), tolerance)
    found = await _layout(context.cluster)
    planned = _planned(context, key, found, lambda: balanced(found, chosen, tolerance=tolerance / 100))
    return _carried_out(context, "Balance the brokers", found, planned, command, all_leaders=True)


async def drain(context: Context) -> dict[str, Any]:
    """Take everything off a broker, which gets no new replicas from then on."""
    broker = context.body["broker"]
    found = await _layout(context.cluster)
    key = ("drain", broker)
    planned = _planned(context, key, found, lambda: drained(found, broker))
    context.confirmed(str(broker))
    warnings = []
    if broker in found.down:
        warnings.append(f"broker {broker} is down: its replicas are copied from the others")
    elif not context.dry_run and broker not in found.cordoned:
        try:
            await context.cluster.run(cordon(broker, True))
        except KafkaError as error:
            warnings.append(f"broker {broker} may get new topics all the same: {error_text(error)}")

    def command(words: list[str]) -> str:
        return context.cluster.commands.line("drain", str(broker), *words)

    return _carried_out(context, f"Drain broker {broker}", found, planned, command, warnings, confirm=str(broker))


async def factor(context: Context) -> dict[str, Any]:
    """Another number of replicas for a topic."""
    topic, wanted = context.body["topic"], context.body["replication"]
    found = await _layout(context.cluster)
    key = ("factor", topic, wanted)
    planned = _planned(context, key, found, lambda: with_factor(found, topic, wanted))

    def command(words: list[str]) -> str | None:
        targets = [(move.partition, move.after) for move in planned]
        rows = [{"topic": at[0], "partition": at[1], "replicas": list(after)} for at, after in targets]
        given = json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"))
        if len(given) > MOST_COMMAND:
            return None
        rate = [] if context.body["throttle"] is None else ["--throttle", str(context.body["throttle"])]
        line = context.cluster.commands.line("reassign-partitions", "--execute", *rate, "--reassignment-json-file")
        return f"{line} <(echo {word(given)})"

    return _carried_out(context, f"Replication factor {wanted} for {topic}", found, planned, command)


async def _layout(cluster: Cluster) -> Layout:
    """As it is now, not as some page saw it. Sizes may be some seconds old."""
    there = await cluster.run(overview())
    dirs, _ = await disks(cluster)
    found: Layout = await cluster.run(layout(there, dirs))
    return found


def _planned(context: Context, key: Hashable, found: Layout, plan: Callable[[], list[Move]]) -> tuple[Move, ...]:
    """The plan that the user saw in the preview; without a preview, a fresh one. Problem (409) when there is none."""
    mover = context.cluster.mover
    own = (context.user, key)
    shown = None if context.dry_run else mover.confirmed(own, found)
    if shown is not None:
        return shown
    try:
        moves = tuple(plan())
    except CannotPlan as error:
        raise Problem(409, str(error)) from None
    if context.dry_run:
        mover.show(own, moves)
    return moves


def _carried_out(
    context: Context,
    title: str,
    found: Layout,
    planned: Sequence[Move],
    command: Callable[[list[str]], str | None],
    warnings: Sequence[str] = (),
    *,
    confirm: str | None = None,
    all_leaders: bool = False,
) -> dict[str, Any]:
    """The preview; or the start of the moves, which go on behind the answer."""
    throttle, concurrent = context.body["throttle"], context.body["concurrent"]
    cluster = context.cluster
    if not context.dry_run and (planned or all_leaders):
        cluster.mover.start(Order(title, tuple(planned), throttle, concurrent, all_leaders), found)
    words = ["--throttle", "none" if throttle is None else str(throttle), "--concurrent", str(concurrent), "--yes"]
    notes = [*warnings]
    if found.under_way:
        notes.append(f"{len(found.under_way)} partitions are on the way already: the plan counts them where they go")
    if not planned:
        notes.append("nothing has to move")
    plan = Plan(
        title,
        rows_of(found, planned, throttle),
        warnings=tuple(notes),
        command=command(words),
        confirm=confirm,
    )
    return context.result(plan)


# -- what goes on -----------------------------------------------------------------------------------------------------------


async def stop(context: Context) -> dict[str, Any]:
    """Begin no more moves of the console's plan; those under way end."""
    mover = context.cluster.mover
    status = mover.status()
    if not mover.busy or status is None:
        raise Problem(409, "the console carries out no moves")
    if not context.dry_run:
        mover.stop()
    plan = Plan(
        f"Stop: {status['title']}",
        (
            PlanRow("moves under way", str(status["moving"]), None, "they end"),
            PlanRow("moves that wait", str(status["waiting"]), "0", "plan again to go on"),
        ),
    )
    return context.result(plan)


async def cancel(context: Context) -> dict[str, Any]:
    """Take back what is under way: replicas stay where they were before."""
    cluster = context.cluster
    now = await cluster.run(under_way())
    if not now:
        raise Problem(409, "no replica moves")
    context.confirmed("cancel")
    failed: tuple[tuple[str, str], ...] = ()
    if not context.dry_run:
        if cluster.mover.busy:
            cluster.mover.stop()
        errors = await cluster.run(replicas.reassign(dict.fromkeys(now)))
        failed = tuple((f"{at[0]}-{at[1]}", error_text(error)) for at, error in sorted(errors.items()))
    rows = [
        PlanRow(
            f"{topic}-{index}",
            ", ".join(map(str, each.target)),
            ", ".join(str(broker) for broker in each.replicas if broker not in each.adding),
        )
        for (topic, index), each in sorted(now.items())[:MOST_ROWS]
    ]
    plan = Plan(
        f"Cancel {len(now)} moves",
        tuple(rows),
        ("what was copied so far",),
        ("moves that another tool began are cancelled, too",),
        confirm="cancel",
        failed=failed,
    )
    return context.result(plan)


async def clear_limits(context: Context) -> dict[str, Any]:
    """Take away limits on the bandwidth of moves, of all brokers and topics."""
    cluster = context.cluster
    there, _ = await cluster.overview()
    if cluster.mover.busy:
        raise Problem(409, "the console carries out moves, and takes their limits away at their end")
    states = await cluster.run(broker_states(list(there.brokers)))
    limited = {broker: rate for broker, (rate, _) in states.items() if rate is not None}
    now = await cluster.run(under_way())
    if not context.dry_run:
        await cluster.run(unlimit(list(there.brokers), {topic for topic, _ in now}))
    plan = Plan(
        "Take away the limits of moves",
        tuple(PlanRow(f"broker {broker}", f"{size_text(rate)}/s", "no limit") for broker, rate in sorted(limited.items())),
        warnings=(f"{len(now)} partitions move now, and may use all bandwidth from then on",) if now else (),
    )
    return context.result(plan)


async def take_back(context: Context) -> dict[str, Any]:
    """Let a broker that was drained take new replicas again."""
    broker = context.body["broker"]
    states: Mapping[int, BrokerState] = await context.cluster.run(broker_states([broker]))
    if not states[broker][1]:
        raise Problem(409, f"broker {broker} takes new replicas already")
    if not context.dry_run:
        await context.cluster.run(cordon(broker, False))
    plan = Plan(
        f"Let broker {broker} take replicas again",
        (PlanRow(f"broker {broker}", "takes no new replicas", "takes new replicas", "balance the brokers to give it its share"),),
        command=context.cluster.commands.line("drain", str(broker), "--undo"),
    )
    return context.result(plan)


_BROKER: Final = number(0, 2**31 - 1)
_DRY_RUN: Final = {"dry_run": Param(flag, required=True)}
_CONFIRM: Final = {"confirm": Param(optional(text(1000)), None)}
_PACE: Final = {
    "throttle": Param(optional(number(1)), THROTTLE),
    "concurrent": Param(number(1, 1000), CONCURRENT),
    **_DRY_RUN,
}
_MOVES: Final = "clusters/{c}/moves"
ROUTES: Final = (
    Route("GET", _MOVES, moves, Right.VIEW, About.CLUSTER),
    Route(
        "POST",
        _MOVES + "/rebalance",
        rebalance,
        Right.CHANGE,
        About.CLUSTER,
        body={
            "brokers": Param(optional(listed(_BROKER, MOST_BROKERS, least=1)), None),
            "tolerance": Param(number(0, 100), 10),
            **_PACE,
        },
    ),
    Route(
        "POST",
        _MOVES + "/drain",
        drain,
        Right.CHANGE,
        About.CLUSTER,
        body={"broker": Param(_BROKER, required=True), **_CONFIRM, **_PACE},
    ),
    Route(
        "POST",
        _MOVES + "/factor",
        factor,
        Right.CHANGE,
        About.CLUSTER,
        body={"topic": Param(topic_name, required=True), "replication": Param(number(1, 32_767), required=True), **_PACE},
    ),
    Route("POST", _MOVES + "/stop", stop, Right.CHANGE, About.CLUSTER, body=_DRY_RUN),
    Route("POST", _MOVES + "/cancel", cancel, Right.CHANGE, About.CLUSTER, body={**_CONFIRM, **_DRY_RUN}),
    Route("POST", _MOVES + "/clear", clear_limits, Right.CHANGE, About.CLUSTER, body=_DRY_RUN),
    Route(
        "POST",
        _MOVES + "/undrain",
        take_back,
        Right.CHANGE,
        About.CLUSTER,
        body={"broker": Param(_BROKER, required=True), **_DRY_RUN},
    ),
)
