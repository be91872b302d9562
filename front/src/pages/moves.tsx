/** Replicas that move between brokers: plans, their progress, limits that were left. */

import { useMemo, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Move, MovePlan, MovesData } from "../lib/contract";
import { bytes } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { toBroker, toTopic } from "../lib/links";
import { shareOf, stateOf } from "../lib/moves";
import { useRead } from "../lib/reading";
import { Action, AsOf, Badge, Empty, Fact, Head, Loading, Partial, ProblemBox, Time } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { Table, type Column } from "../ui/table";
import { MoveChange, type MoveKind } from "./move_changes";

export function Moves({ cluster }: { cluster: string }) {
  useTitle(`Moves in ${cluster}`);
  const [open, setOpen] = useState<MoveKind | null>(null);
  const [back, setBack] = useState<number | null>(null);
  const { answer, problem, busy, stale, reload } = useRead<MovesData>(inCluster(cluster, ["moves"]), 3000);
  const columns = useMemo(() => columnsOf(cluster), [cluster]);
  const data = answer?.data;
  const change = data?.may.change === true;
  const running = data?.plan !== null && data?.plan !== undefined && data.plan.ended_ms === null;
  const rows = data?.rows ?? [];
  return (
    <div class="filled">
      <Head title="Moves" aside={<AsOf answer={answer} busy={busy} reload={reload} />}>
        {data && <span role="status">{rows.length === 0 ? "" : `${rows.length} under way`}</span>}
        {data && data.limits.length > 0 && (
          <Fact name="Limits">{data.limits.map((each) => `broker ${each.broker}: ${bytes(each.rate)}/s`).join(", ")}</Fact>
        )}
      </Head>
      {change && (
        <div class="tools">
          <Action icon="play" onClick={() => setOpen("rebalance")} disabled={running}>
            Balance the brokers
          </Action>
          <Action onClick={() => setOpen("drain")} disabled={running}>
            Drain a broker
          </Action>
          <Action onClick={() => setOpen("factor")} disabled={running}>
            Change a replication factor
          </Action>
          {running && data.plan?.stopping === false && <Action icon="stop" onClick={() => setOpen("stop")}>Stop the plan</Action>}
          {rows.length > 0 && <Action icon="close" onClick={() => setOpen("cancel")}>Cancel what moves</Action>}
          {!running && data.limits.length > 0 && <Action onClick={() => setOpen("clear")}>Take limits away</Action>}
        </div>
      )}
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data?.plan && <PlanBox plan={data.plan} />}
      {data && data.cordoned.length > 0 && (
        <p class="box note">
          Drained, and without new replicas:{" "}
          {data.cordoned.map((broker) => (
            <span key={broker} class="inline">
              <a href={toBroker(cluster, broker)}>broker {broker}</a>{" "}
              {change && <Action onClick={() => setBack(broker)}>Let broker {broker} take replicas again</Action>}
            </span>
          ))}
        </p>
      )}
      {data === undefined ? (
        problem === null && <Loading what="the moves" />
      ) : (
        <Table label="Replicas that move" rows={rows} columns={columns} rowKey={(row) => `${row.topic}-${row.partition}`} sortKey="sort" fill keys stale={stale} empty={<Empty title="No replica moves">Balance the brokers, drain one, or use tidelog rebalance: progress shows here.</Empty>} />
      )}
      {open !== null && <MoveChange kind={open} cluster={cluster} onClose={() => setOpen(null)} onDone={reload} />}
      {back !== null && <ChangeDialog title={`Let broker ${back} take replicas again`} path={inCluster(cluster, ["moves", "undrain"])} body={{ broker: back }} verb="Take it back" onClose={() => setBack(null)} onDone={reload} />}
    </div>
  );
}

function columnsOf(cluster: string): readonly Column<Move>[] {
  return [
    {
      key: "partition",
      title: "Partition",
      cell: (row) => (
        <a href={toTopic(cluster, row.topic, "partitions")}>
          {row.topic}-{row.partition}
        </a>
      ),
      text: (row) => `${row.topic}-${row.partition}`,
      compare: (left, right) => left.topic.localeCompare(right.topic) || left.partition - right.partition,
    },
    { key: "replicas", title: "Replicas", width: 180, cell: (row) => row.replicas.join(", "), text: (row) => row.replicas.join(", ") },
    { key: "adding", title: "Adds", width: 120, cell: (row) => row.adding.join(", ") || <span class="soft">none</span>, text: (row) => row.adding.join(", ") },
    { key: "removing", title: "Removes", width: 120, wide: true, cell: (row) => row.removing.join(", ") || <span class="soft">none</span>, text: (row) => row.removing.join(", ") },
    { key: "copied", title: "Copied", width: 220, cell: (row) => <Copied row={row} />, text: (row) => `${bytes(row.copied)} of ${bytes(row.bytes)}`, compare: (left, right) => (shareOf(left) ?? -1) - (shareOf(right) ?? -1) },
  ];
}

function Copied({ row }: { row: Move }) {
  const share = shareOf(row);
  if (share === null) return <span class="unknown">unknown</span>;
  return (
    <span class="used">
      <progress max={1} value={share} aria-label={`Copied of ${row.topic}-${row.partition}`} /> {bytes(row.copied)} of {bytes(row.bytes)}
    </span>
  );
}

function PlanBox({ plan }: { plan: MovePlan }) {
  const bad = plan.problem !== null || plan.failures > 0;
  return (
    <section class={`box ${bad ? "warning" : "note"}`} aria-label="The console's plan">
      <p>
        <Badge tone={plan.ended_ms === null ? "busy" : bad ? "warning" : "ok"}>{plan.title}</Badge> {stateOf(plan)}
        {plan.throttle !== null && plan.ended_ms === null && `, ${bytes(plan.throttle)}/s at each broker`}. Began <Time ms={plan.began_ms} relative />
        {plan.ended_ms !== null && (
          <>
            , ended <Time ms={plan.ended_ms} relative />
          </>
        )}
        .
      </p>
      {plan.problem !== null && <p>{plan.problem}</p>}
      {plan.failed.length > 0 && (
        <ul>
          {plan.failed.map((each) => (
            <li key={each.what}>
              <b>{each.what}</b>: {each.error}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
