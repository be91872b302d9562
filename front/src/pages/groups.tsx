/** Groups of all four protocols in one list; lag and members are asked for the rows in sight. */

import { useCallback, useEffect, useMemo } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { GroupFacts, GroupRow, Rows } from "../lib/contract";
import { SORTED, useFacts } from "../lib/facts";
import { compareCounts, plural } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { toGroup } from "../lib/links";
import { setQuery, useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { useSession } from "../lib/session";
import { Amount, AsOf, Badge, Choice, Empty, Fact, Filter, Head, Loading, Partial, ProblemBox, type Tone } from "../ui/basics";
import { Export, Table, type Column } from "../ui/table";

const TONES: Readonly<Record<string, Tone>> = {
  Stable: "ok",
  Empty: "idle",
  Dead: "idle",
  PreparingRebalance: "busy",
  CompletingRebalance: "busy",
  Assigning: "busy",
  Reconciling: "busy",
  Initializing: "busy",
  NotReady: "warning",
};

/** The state of a group by the name that Kafka gives it. */
export function GroupState({ state }: { state: string }) {
  return <Badge tone={TONES[state] ?? "note"}>{state}</Badge>;
}

export const groupName = (id: string): string => (id === "" ? "(empty name)" : id);

export function Groups({ cluster }: { cluster: string }) {
  useTitle(`Groups of ${cluster}`);
  const session = useSession();
  const [text, setText] = useQuery("q");
  const [type, setType] = useQuery("type");
  const [state, setState] = useQuery("state");
  const { answer, problem, busy, stale, reload } = useRead<Rows<GroupRow>>(inCluster(cluster, ["groups"], { limit: "20000" }), 15_000);
  const data = answer?.data;
  const rows = useMemo(() => filtered(data?.rows ?? [], text, type, state), [data, text, type, state]);
  const facts = useFacts<GroupFacts>(
    (ids) => inCluster(cluster, ["groups", "facts"], { id: ids }),
    (row) => row.id,
  );
  const [order] = useQuery("sort");
  // An order by facts needs them of all rows, not of those in sight alone.
  const byFacts = /^-?(lag|members|topics)$/.test(order);
  const visible = useCallback((seen: readonly GroupRow[]) => (byFacts ? undefined : facts.want(seen.map((row) => row.id))), [facts.want, byFacts]);
  useEffect(() => {
    if (byFacts) facts.want(rows.slice(0, SORTED).map((row) => row.id));
  }, [facts.want, byFacts, rows]);
  const columns = useMemo(() => columnsOf(cluster, facts.of), [cluster, facts.of, facts.version]);
  const found = (of: (row: GroupRow) => string): readonly (readonly [string, string])[] => [["", "all"], ...[...new Set((data?.rows ?? []).map(of))].sort().map((each) => [each, each] as const)];
  return (
    <div class="filled">
      <Head
        title="Groups"
        aside={
          <>
            <AsOf answer={answer} busy={busy} reload={reload} />
            <Export name={`${cluster}-groups`} rows={rows} columns={columns} allowed={session.features["export"] !== false} />
          </>
        }
      >
        {data && (
          <Fact name="">
            <span role="status">{rows.length === data.rows.length ? plural(data.total, "group") : `${rows.length} of ${plural(data.total, "group")}`}</span>
          </Fact>
        )}
      </Head>
      <div class="tools">
        <Filter label="Filter groups by name" value={text} onChange={setText} placeholder="Part of a name" />
        <Choice label="Type" value={type} options={found((row) => row.type)} onChange={setType} />
        <Choice label="State" value={state} options={found((row) => row.state)} onChange={setState} />
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? (
        problem === null && <Loading what="the groups" />
      ) : (
        <Table
          label="Groups"
          rows={rows}
          columns={columns}
          rowKey={(row) => row.id}
          sortKey="sort"
          fill
          keys
          stale={stale}
          onVisible={visible}
          empty={
            data.rows.length === 0 ? (
              <Empty
                title="No group has ever committed here"
                command={`tidelog console-consumer --bootstrap-server ${session.clusters.find((each) => each.id === cluster)?.bootstrap ?? "HOST:PORT"} --topic TOPIC --group my-group`}
              >
                A group appears with its first member or offset:
              </Empty>
            ) : (
              <Empty title="No group matches">
                <button type="button" onClick={() => setQuery({ q: undefined, type: undefined, state: undefined })}>
                  Show all
                </button>
              </Empty>
            )
          }
        />
      )}
    </div>
  );
}

function filtered(rows: readonly GroupRow[], text: string, type: string, state: string): readonly GroupRow[] {
  const part = text.trim().toLowerCase();
  return rows.filter((row) => (part === "" || row.id.toLowerCase().includes(part)) && (type === "" || row.type === type) && (state === "" || row.state === state));
}

const byName = (left: GroupRow, right: GroupRow): number => (left.id < right.id ? -1 : left.id > right.id ? 1 : 0);

function columnsOf(cluster: string, facts: (id: string) => GroupFacts | undefined): readonly Column<GroupRow>[] {
  const unknown = (row: GroupRow): string => facts(row.id)?.error ?? (facts(row.id) === undefined ? "…" : "unknown");
  return [
    { key: "id", title: "Group", cell: (row) => <a href={toGroup(cluster, row.id)}>{groupName(row.id)}</a>, text: (row) => row.id, compare: byName },
    { key: "state", title: "State", width: 190, cell: (row) => <GroupState state={row.state} />, text: (row) => row.state, compare: (left, right) => left.state.localeCompare(right.state) || byName(left, right) },
    { key: "type", title: "Type", width: 100, cell: (row) => row.type, text: (row) => row.type, compare: (left, right) => left.type.localeCompare(right.type) || byName(left, right) },
    { key: "lag", title: "Lag", width: 100, right: true, cell: (row) => <Amount value={facts(row.id)?.lag} unknown={unknown(row)} />, text: (row) => facts(row.id)?.lag ?? "", compare: (left, right) => compareCounts(facts(left.id)?.lag, facts(right.id)?.lag) || byName(left, right) },
    { key: "members", title: "Members", width: 90, right: true, cell: (row) => <Amount value={facts(row.id)?.members} unknown={unknown(row)} />, text: (row) => String(facts(row.id)?.members ?? ""), compare: (left, right) => compareCounts(facts(left.id)?.members, facts(right.id)?.members) || byName(left, right) },
    { key: "topics", title: "Topics", width: 80, right: true, wide: true, cell: (row) => <Amount value={facts(row.id)?.topics} unknown={unknown(row)} />, text: (row) => String(facts(row.id)?.topics ?? ""), compare: (left, right) => compareCounts(facts(left.id)?.topics, facts(right.id)?.topics) || byName(left, right) },
  ];
}
