/** The clusters of this console, the worst first. */

import type { ClusterRow } from "../lib/contract";
import { useTitle } from "../lib/hooks";
import { toCluster } from "../lib/links";
import { useRead } from "../lib/reading";
import { Amount, AsOf, Badge, Empty, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { Table, type Column } from "../ui/table";

const COLUMNS: readonly Column<ClusterRow>[] = [
  { key: "id", title: "Cluster", width: 180, cell: (row) => <a href={toCluster(row.id)}>{row.id}</a>, text: (row) => row.id },
  { key: "state", title: "State", width: 200, cell: (row) => <State row={row} />, text: (row) => row.error ?? "" },
  { key: "brokers", title: "Brokers", width: 90, right: true, cell: (row) => <Amount value={row.brokers} /> },
  { key: "topics", title: "Topics", width: 90, right: true, cell: (row) => <Amount value={row.topics} /> },
  { key: "partitions", title: "Partitions", width: 100, right: true, wide: true, cell: (row) => <Amount value={row.partitions} /> },
  { key: "groups", title: "Groups", width: 90, right: true, wide: true, cell: (row) => <Amount value={row.groups} /> },
  { key: "bootstrap", title: "Bootstrap", wide: true, cell: (row) => row.bootstrap, text: (row) => row.bootstrap },
];

const badness = (row: ClusterRow): number => (row.reachable ? (row.unclean ?? 0) : Infinity);

export function Clusters() {
  useTitle("Clusters");
  const { answer, problem, busy, stale, reload } = useRead<readonly ClusterRow[]>("clusters", 15_000);
  const rows = [...(answer?.data ?? [])].sort((left, right) => (badness(left) === badness(right) ? 0 : badness(right) - badness(left)));
  return (
    <>
      <Head title="Clusters" aside={<AsOf answer={answer} busy={busy} reload={reload} />} />
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? (
        problem === null && <Loading what="the clusters" />
      ) : (
        <Table label="Clusters" rows={rows} columns={COLUMNS} rowKey={(row) => row.id} stale={stale} keys empty={<Empty title="Your login sees no cluster">Its operator can give it the right to view one.</Empty>} />
      )}
    </>
  );
}

function State({ row }: { row: ClusterRow }) {
  if (!row.reachable) return <Badge tone="error">not reachable{row.error === null ? "" : `: ${row.error}`}</Badge>;
  if (row.unclean === null) return <Badge tone="idle">unknown</Badge>;
  return row.unclean === 0 ? <Badge tone="ok">clean</Badge> : <Badge tone="warning">{row.unclean} unclean partitions</Badge>;
}
