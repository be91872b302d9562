/** The groups that read a topic, and the producers that its brokers remember. */

import { useMemo } from "preact/hooks";
import { inTopic } from "../lib/api";
import type { ProducerRow, TopicGroup } from "../lib/contract";
import { compareCounts } from "../lib/format";
import { toGroup } from "../lib/links";
import { useRead } from "../lib/reading";
import { Amount, Badge, Empty, Exact, Loading, Partial, ProblemBox, Time } from "../ui/basics";
import { Table, type Column } from "../ui/table";
import { GroupState } from "./groups";

export function TopicGroups({ cluster, topic }: { cluster: string; topic: string }) {
  const { answer, problem, stale, reload } = useRead<readonly TopicGroup[]>(inTopic(cluster, topic, ["groups"]), 15_000);
  const columns = useMemo(
    (): readonly Column<TopicGroup>[] => [
      { key: "id", title: "Group", cell: (row) => <a href={toGroup(cluster, row.id)}>{row.id === "" ? "(empty name)" : row.id}</a>, text: (row) => row.id, compare: (left, right) => left.id.localeCompare(right.id) },
      { key: "type", title: "Type", width: 100, cell: (row) => row.type, compare: (left, right) => left.type.localeCompare(right.type) },
      { key: "state", title: "State", width: 180, cell: (row) => <GroupState state={row.state} />, compare: (left, right) => left.state.localeCompare(right.state) },
      { key: "lag", title: "Lag here", width: 110, right: true, cell: (row) => <Amount value={row.lag} />, compare: (left, right) => compareCounts(left.lag, right.lag) },
    ],
    [cluster],
  );
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? (
        problem === null && <Loading what="the groups that read this topic" />
      ) : (
        <Table
          label="Groups that read this topic"
          rows={answer.data}
          columns={columns}
          rowKey={(row) => row.id}
          sortKey="sort"
          sorted="-lag"
          fill
          keys
          stale={stale}
          empty={<Empty title="No group reads this topic">No group has committed an offset here, and no member is assigned a partition. Consumers that commit nothing are not visible.</Empty>}
        />
      )}
    </>
  );
}

const PRODUCERS: readonly Column<ProducerRow>[] = [
  { key: "partition", title: "Partition", width: 90, right: true, cell: (row) => row.partition, compare: (left, right) => left.partition - right.partition },
  { key: "producer", title: "Producer id", width: 150, right: true, cell: (row) => <Exact value={row.producer_id} />, compare: (left, right) => compareCounts(left.producer_id, right.producer_id) },
  { key: "epoch", title: "Epoch", width: 80, right: true, cell: (row) => row.epoch },
  { key: "sequence", title: "Last sequence", width: 120, right: true, wide: true, cell: (row) => row.last_sequence },
  { key: "last", title: "Last write", width: 200, cell: (row) => <Time ms={row.last_ms} relative />, compare: (left, right) => compareCounts(left.last_ms, right.last_ms) },
  {
    key: "transaction",
    title: "Open transaction",
    cell: (row) => (row.transaction_start === null ? <Badge tone="idle">none</Badge> : <Badge tone="warning">since offset {row.transaction_start}</Badge>),
    compare: (left, right) => compareCounts(left.transaction_start, right.transaction_start),
  },
];

export function TopicProducers({ cluster, topic }: { cluster: string; topic: string }) {
  const { answer, problem, stale, reload } = useRead<readonly ProducerRow[]>(inTopic(cluster, topic, ["producers"]), 15_000);
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? (
        problem === null && <Loading what="the producers" />
      ) : (
        <Table
          label="Producers"
          rows={answer.data}
          columns={PRODUCERS}
          rowKey={(row) => `${row.partition} ${row.producer_id}`}
          sortKey="sort"
          fill
          keys
          stale={stale}
          empty={<Empty title="The brokers remember no producer here">They remember idempotent and transactional producers, for producer.id.expiration.ms after the last write. Others leave no trace.</Empty>}
        />
      )}
    </>
  );
}
