/** The metadata quorum with the cluster's features. */

import { useMemo } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Quorum, QuorumMember } from "../lib/contract";
import { compareCounts, integer } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { useRead } from "../lib/reading";
import { AsOf, Badge, Empty, Exact, Fact, Head, Loading, Partial, ProblemBox, Time } from "../ui/basics";
import { Table, type Column } from "../ui/table";

interface Row extends QuorumMember {
  readonly role: "leader" | "voter" | "observer";
}

export function QuorumPage({ cluster }: { cluster: string }) {
  useTitle(`Quorum of ${cluster}`);
  const { answer, problem, busy, stale, reload } = useRead<Quorum>(inCluster(cluster, ["quorum"]), 5000);
  const data = answer?.data;
  const rows = useMemo((): readonly Row[] => (data === undefined ? [] : [...data.voters.map((each) => ({ ...each, role: each.id === data.leader ? ("leader" as const) : ("voter" as const) })), ...data.observers.map((each) => ({ ...each, role: "observer" as const }))]), [data]);
  return (
    <>
      <Head title="Quorum" aside={<AsOf answer={answer} busy={busy} reload={reload} />}>
        {data && (
          <>
            <Fact name="Leader">{data.leader < 0 ? <Badge tone="error">none</Badge> : data.leader}</Fact>
            <Fact name="Epoch">{data.leader_epoch}</Fact>
            <Fact name="High watermark">
              <Exact value={data.high_watermark} />
            </Fact>
          </>
        )}
      </Head>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? problem === null && <Loading what="the quorum" /> : <Table label="Voters and observers" rows={rows} columns={MEMBERS} rowKey={(row) => `${row.role} ${row.id}`} sortKey="sort" keys stale={stale} />}
      <h2>Features</h2>
      <Features cluster={cluster} />
    </>
  );
}

const behind = (row: Row): boolean => (integer(row.lag) ?? 0n) > 100n;

const MEMBERS: readonly Column<Row>[] = [
  { key: "id", title: "Node", width: 80, right: true, cell: (row) => row.id, compare: (left, right) => left.id - right.id },
  { key: "role", title: "Role", width: 120, cell: (row) => row.role, compare: (left, right) => left.role.localeCompare(right.role) },
  { key: "state", title: "State", width: 130, cell: (row) => (row.lag === null ? <Badge tone="idle">unknown</Badge> : behind(row) ? <Badge tone="warning">behind</Badge> : <Badge tone="ok">caught up</Badge>) },
  { key: "end", title: "Log end", width: 120, right: true, cell: (row) => <Exact value={row.end} />, compare: (left, right) => compareCounts(left.end, right.end) },
  { key: "lag", title: "Behind by", width: 100, right: true, cell: (row) => <Exact value={row.lag} />, compare: (left, right) => compareCounts(left.lag, right.lag) },
  { key: "fetch", title: "Last fetch", width: 150, wide: true, cell: (row) => (row.role === "leader" ? <span class="soft">leads</span> : <Time ms={row.last_fetch_ms} relative />) },
  { key: "caught", title: "Last caught up", wide: true, cell: (row) => (row.role === "leader" ? <span class="soft">leads</span> : <Time ms={row.last_caught_up_ms} relative />) },
];

interface Feature {
  readonly name: string;
  readonly level: number;
}

const FEATURES: readonly Column<Feature>[] = [
  { key: "name", title: "Feature", width: 260, cell: (row) => row.name, text: (row) => row.name, compare: (left, right) => left.name.localeCompare(right.name) },
  { key: "level", title: "Level", width: 80, right: true, cell: (row) => row.level },
  { key: "rest", title: "", cell: () => null },
];

function Features({ cluster }: { cluster: string }) {
  const { answer, problem, stale, reload } = useRead<readonly Feature[]>(inCluster(cluster, ["features"]), 60_000);
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      {answer === null ? problem === null && <Loading what="the features" /> : <Table label="Features" rows={answer.data} columns={FEATURES} rowKey={(row) => row.name} stale={stale} empty={<Empty title="The cluster has finalized no feature" />} />}
    </>
  );
}
