/** The partitions that a group reads: committed, end, lag, and which member has them. */

import { useMemo } from "preact/hooks";
import type { Group, OffsetRow } from "../lib/contract";
import { compareCounts } from "../lib/format";
import { toTopic } from "../lib/links";
import { useQuery } from "../lib/location";
import { remark } from "../lib/meaning";
import { Action, Amount, Empty, Exact, Filter } from "../ui/basics";
import { Icon } from "../ui/icons";
import { Table, type Column } from "../ui/table";

export function Offsets({ cluster, group, onForget }: { cluster: string; group: Group; onForget: (() => void) | null }) {
  const [text, setText] = useQuery("q");
  const share = group.type === "share";
  const rows = useMemo(() => {
    const part = text.trim().toLowerCase();
    return part === "" ? group.offsets : group.offsets.filter((row) => `${row.topic}-${row.partition}`.toLowerCase().includes(part) || (row.member ?? "").toLowerCase().includes(part));
  }, [group.offsets, text]);
  const columns = useMemo(() => columnsOf(cluster, share), [cluster, share]);
  return (
    <>
      <div class="tools">
        <Filter label="Filter partitions" value={text} onChange={setText} placeholder="Topic-partition or member" />
        {onForget !== null && (
          <Action icon="trash" onClick={onForget}>
            Remove offsets of a topic
          </Action>
        )}
      </div>
      <Table
        label="Partitions that the group reads"
        rows={rows}
        columns={columns}
        rowKey={(row) => `${row.topic}-${row.partition}`}
        sortKey="sort"
        sorted="-lag"
        fill
        keys
        empty={
          text !== "" ? (
            <Empty title={`No partition matches “${text}”`} />
          ) : (
            <Empty title="The group has committed no offset">Where its consumers begin is then decided by {share ? "share.auto.offset.reset" : "auto.offset.reset"}.</Empty>
          )
        }
      />
    </>
  );
}

const at = (row: OffsetRow): string => `${row.topic}-${row.partition}`;

function byPartition(left: OffsetRow, right: OffsetRow): number {
  return left.topic < right.topic ? -1 : left.topic > right.topic ? 1 : left.partition - right.partition;
}

function columnsOf(cluster: string, share: boolean): readonly Column<OffsetRow>[] {
  return [
    { key: "partition", title: "Partition", cell: (row) => <a href={toTopic(cluster, row.topic, "", { partition: String(row.partition), ...(row.committed === null ? {} : { mode: "offset", offset: row.committed }) })}>{at(row)}</a>, text: at, compare: byPartition },
    { key: "lag", title: "Lag", width: 100, right: true, cell: (row) => <Amount value={row.lag} />, text: (row) => row.lag ?? "", compare: (left, right) => compareCounts(left.lag, right.lag) || byPartition(right, left) },
    { key: "committed", title: share ? "Share start" : "Committed", width: 120, right: true, cell: (row) => (row.committed === null ? <span class="unknown">none</span> : <Exact value={row.committed} />), compare: (left, right) => compareCounts(left.committed, right.committed) },
    { key: "end", title: "End", width: 120, right: true, cell: (row) => <Exact value={row.end} />, compare: (left, right) => compareCounts(left.end, right.end) },
    { key: "stable", title: "Stable end", width: 110, right: true, wide: true, cell: (row) => (row.stable === row.end ? <span class="soft">same</span> : <Exact value={row.stable} />) },
    { key: "start", title: "Start", width: 110, right: true, wide: true, cell: (row) => <Exact value={row.start} /> },
    {
      key: "note",
      title: "Note",
      width: 220,
      wide: true,
      cell: (row) => {
        const text = remark(row);
        return text === "" ? null : (
          <span class="remark">
            <Icon name="warning" /> {text}
          </span>
        );
      },
      text: remark,
    },
    { key: "member", title: "Member", width: 200, wide: true, mono: true, cell: (row) => row.member ?? <span class="soft">none</span>, text: (row) => row.member ?? "", compare: (left, right) => (left.member ?? "").localeCompare(right.member ?? "") },
  ];
}
