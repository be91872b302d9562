/** Partitions of a topic: where they are, how far they reach; more of them, and fewer records. */

import { useMemo, useState } from "preact/hooks";
import { inTopic } from "../lib/api";
import type { Partition, Topic } from "../lib/contract";
import { compareCounts, integer } from "../lib/format";
import { toTopic } from "../lib/links";
import { Action, Amount, Badge, Bytes, Exact, Field } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { Table, type Column } from "../ui/table";

type Dialog = "" | "more" | "truncate";

export function Partitions({ cluster, topic, onDone }: { cluster: string; topic: Topic; onDone: () => void }) {
  const [dialog, setDialog] = useState<Dialog>("");
  const columns = useMemo(() => columnsOf(cluster, topic), [cluster, topic]);
  return (
    <>
      {topic.may.change && (
        <div class="tools">
          <Action icon="plus" onClick={() => setDialog("more")}>
            Add partitions
          </Action>
          <Action icon="trash" onClick={() => setDialog("truncate")}>
            Delete records
          </Action>
        </div>
      )}
      <Table label="Partitions" rows={topic.partitions} columns={columns} rowKey={(row) => String(row.partition)} sortKey="sort" fill keys />
      {dialog === "more" && <More cluster={cluster} topic={topic} onClose={() => setDialog("")} onDone={onDone} />}
      {dialog === "truncate" && <Truncate cluster={cluster} topic={topic} onClose={() => setDialog("")} onDone={onDone} />}
    </>
  );
}

export const leaderless = (row: Partition): boolean => (row.leader ?? -1) < 0;

/** Records between the first and the last offset: an upper bound where the topic is compacted. */
function recordsOf(row: Partition): bigint | null {
  const [start, end] = [integer(row.start), integer(row.end)];
  return start === null || end === null ? null : end - start;
}

function columnsOf(cluster: string, topic: Topic): readonly Column<Partition>[] {
  const moves = new Map(topic.moves.map((move) => [move.partition, move]));
  return [
    { key: "partition", title: "Partition", width: 86, right: true, cell: (row) => <a href={toTopic(cluster, topic.name, "", { partition: String(row.partition) })}>{row.partition}</a>, compare: (left, right) => left.partition - right.partition },
    { key: "state", title: "State", width: 180, cell: (row) => <State row={row} />, compare: (left, right) => badness(left) - badness(right) },
    { key: "leader", title: "Leader", width: 76, right: true, cell: (row) => (leaderless(row) ? "none" : row.leader), compare: (left, right) => (left.leader ?? -1) - (right.leader ?? -1) },
    { key: "replicas", title: "Replicas", width: 110, cell: (row) => row.replicas.join(", "), text: (row) => row.replicas.join(", ") },
    { key: "in_sync", title: "In sync", width: 110, wide: true, cell: (row) => row.in_sync.join(", "), text: (row) => row.in_sync.join(", ") },
    { key: "epoch", title: "Epoch", width: 70, right: true, wide: true, cell: (row) => row.leader_epoch ?? "" },
    { key: "start", title: "Start", width: 110, right: true, wide: true, cell: (row) => <Exact value={row.start} />, compare: (left, right) => compareCounts(left.start, right.start) },
    { key: "end", title: "End", width: 110, right: true, cell: (row) => <Exact value={row.end} />, compare: (left, right) => compareCounts(left.end, right.end) },
    {
      key: "records",
      title: "Records",
      width: 90,
      right: true,
      cell: (row) => <Amount value={recordsOf(row)} />,
      compare: (left, right) => compareCounts(recordsOf(left), recordsOf(right)),
    },
    { key: "bytes", title: "Size", width: 100, right: true, wide: true, cell: (row) => <Bytes value={row.bytes} />, compare: (left, right) => compareCounts(left.bytes, right.bytes) },
    {
      key: "note",
      title: "Note",
      wide: true,
      cell: (row) => note(row, moves.get(row.partition)),
      text: (row) => note(row, moves.get(row.partition)),
    },
  ];
}

const badness = (row: Partition): number => (leaderless(row) ? 1000 : 0) + row.replicas.length - row.in_sync.length;

function State({ row }: { row: Partition }) {
  if (leaderless(row)) return <Badge tone="error">no leader</Badge>;
  if (row.in_sync.length < row.replicas.length) return <Badge tone="warning">{row.replicas.length - row.in_sync.length} out of sync</Badge>;
  return <Badge tone="ok">in sync</Badge>;
}

function note(row: Partition, move: Topic["moves"][number] | undefined): string {
  const parts: string[] = [];
  if (row.stable !== null && row.end !== null && row.stable !== row.end) parts.push(`an open transaction since offset ${row.stable}`);
  if (row.offline.length > 0) parts.push(`offline on ${row.offline.join(", ")}`);
  if (move) parts.push(`moving: adds ${move.adding.join(", ") || "none"}, removes ${move.removing.join(", ") || "none"}`);
  return parts.join("; ");
}

function More({ cluster, topic, onClose, onDone }: { cluster: string; topic: Topic; onClose: () => void; onDone: () => void }) {
  const now = topic.partitions.length;
  const [count, setCount] = useState(String(now + 1));
  const wanted = Number(count);
  return (
    <ChangeDialog
      title={`Add partitions to ${topic.name}`}
      path={inTopic(cluster, topic.name, ["partitions"])}
      body={Number.isInteger(wanted) && wanted > now ? { count: wanted } : null}
      verb="Add the partitions"
      onClose={onClose}
      onDone={onDone}
    >
      <Field label="Partitions in all" hint={`now ${now}; keys go to other partitions afterwards, and a topic never has fewer again`}>
        <input type="number" min={now + 1} value={count} onInput={(event) => setCount(event.currentTarget.value)} autofocus />
      </Field>
    </ChangeDialog>
  );
}

function Truncate({ cluster, topic, onClose, onDone }: { cluster: string; topic: Topic; onClose: () => void; onDone: () => void }) {
  const [partition, setPartition] = useState("all");
  const [before, setBefore] = useState("");
  const offset = before.trim() === "" ? "end" : before.trim();
  const valid = offset === "end" || /^\d+$/.test(offset);
  const chosen = topic.partitions.filter((each) => partition === "all" || String(each.partition) === partition);
  return (
    <ChangeDialog
      title={`Delete records of ${topic.name}`}
      path={inTopic(cluster, topic.name, ["truncate"])}
      body={valid ? { before: Object.fromEntries(chosen.map((each) => [String(each.partition), offset])) } : null}
      verb="Delete the records"
      danger
      onClose={onClose}
      onDone={onDone}
    >
      <div class="row">
        <Field label="Partition">
          <select value={partition} onChange={(event) => setPartition(event.currentTarget.value)}>
            <option value="all">all {topic.partitions.length}</option>
            {topic.partitions.map((each) => (
              <option key={each.partition} value={String(each.partition)}>
                {each.partition}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Before offset" hint={valid ? "empty: all records" : "a number"}>
          <input inputMode="numeric" value={before} placeholder="end" onInput={(event) => setBefore(event.currentTarget.value)} />
        </Field>
      </div>
    </ChangeDialog>
  );
}
