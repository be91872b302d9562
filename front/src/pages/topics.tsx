/** All topics: ten thousand rows are one request and one table; sizes are asked for the rows in sight. */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Rows, TopicFacts, TopicRow } from "../lib/contract";
import { SORTED, useFacts } from "../lib/facts";
import { compareCounts, plural } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { toTopic } from "../lib/links";
import { go, useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { useRight, useSession } from "../lib/session";
import { Action, Amount, AsOf, Badge, Bytes, Check, Empty, Fact, Filter, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { Export, Table, type Column } from "../ui/table";
import { CreateTopic } from "./create_topic";

export function Topics({ cluster }: { cluster: string }) {
  useTitle(`Topics of ${cluster}`);
  const session = useSession();
  const mayChange = useRight("change");
  const [text, setText] = useQuery("q");
  const [internal, setInternal] = useQuery("internal", "0");
  const [only, setOnly] = useQuery("unclean", "0");
  const [creating, setCreating] = useQuery("create");
  const { answer, problem, busy, stale, reload } = useRead<Rows<TopicRow>>(inCluster(cluster, ["topics"], { internal, limit: "20000" }), 30_000);
  const rows = useMemo(() => filtered(answer?.data.rows ?? [], text, only === "1"), [answer, text, only]);
  const facts = useFacts<TopicFacts>(
    (names) => inCluster(cluster, ["topics", "facts"], { name: names }),
    (row) => row.name,
  );
  const [order] = useQuery("sort");
  // An order by facts needs them of all rows, not of those in sight alone.
  const byFacts = /^-?(records|bytes)$/.test(order);
  const visible = useCallback((seen: readonly TopicRow[]) => (byFacts ? undefined : facts.want(seen.map((row) => row.name))), [facts.want, byFacts]);
  useEffect(() => {
    if (byFacts) facts.want(rows.slice(0, SORTED).map((row) => row.name));
  }, [facts.want, byFacts, rows]);
  const columns = useMemo(() => columnsOf(cluster, facts.of), [cluster, facts.of, facts.version]);
  const [created, setCreated] = useState("");
  const data = answer?.data;
  return (
    <div class="filled">
      <Head
        title="Topics"
        aside={
          <>
            <AsOf answer={answer} busy={busy} reload={reload} />
            <Export name={`${cluster}-topics`} rows={rows} columns={columns} allowed={session.features["export"] !== false} />
            {mayChange && (
              <Action icon="plus" onClick={() => setCreating("1", true)}>
                Create
              </Action>
            )}
          </>
        }
      >
        {data && (
          <Fact name="">
            <span role="status">
              {rows.length === data.rows.length ? plural(data.total, "topic") : `${rows.length} of ${plural(data.total, "topic")}`}
              {data.next !== null && `, of which the first ${data.rows.length} are here`}
            </span>
          </Fact>
        )}
      </Head>
      <div class="tools">
        <Filter label="Filter topics by name" value={text} onChange={setText} placeholder="Part of a name" />
        <Check label="Internal topics" checked={internal === "1"} onChange={(checked) => setInternal(checked ? "1" : "0")} />
        <Check label="Unclean only" checked={only === "1"} onChange={(checked) => setOnly(checked ? "1" : "0")} />
      </div>
      {created !== "" && (
        <p class="box ok" role="status">
          Topic <a href={toTopic(cluster, created)}>{created}</a> is created.
        </p>
      )}
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? (
        problem === null && <Loading what="the topics" />
      ) : (
        <Table
          label="Topics"
          rows={rows}
          columns={columns}
          rowKey={(row) => row.name}
          sortKey="sort"
          fill
          keys
          stale={stale}
          onVisible={visible}
          empty={
            data.rows.length === 0 ? (
              <Empty title="There is no topic yet" command={`tidelog topics --bootstrap-server ${bootstrap(session.clusters, cluster)} --create --topic events`}>
                Create one here, or by the command:
              </Empty>
            ) : (
              <Empty title={`No topic ${only === "1" ? "that is unclean " : ""}has “${text}” in its name`}>
                <button type="button" onClick={() => go(`c/${encodeURIComponent(cluster)}/topics`, true)}>
                  Show all
                </button>
              </Empty>
            )
          }
        />
      )}
      {creating === "1" && (
        <CreateTopic
          cluster={cluster}
          onClose={() => setCreating("")}
          onDone={(name) => {
            setCreated(name);
            reload();
          }}
        />
      )}
    </div>
  );
}

const bootstrap = (clusters: readonly { id: string; bootstrap: string }[], cluster: string): string => clusters.find((each) => each.id === cluster)?.bootstrap ?? "HOST:PORT";

function filtered(rows: readonly TopicRow[], text: string, unclean: boolean): readonly TopicRow[] {
  const part = text.trim().toLowerCase();
  if (part === "" && !unclean) return rows;
  return rows.filter((row) => (part === "" || row.name.toLowerCase().includes(part)) && (!unclean || row.unclean > 0));
}

const byName = (left: TopicRow, right: TopicRow): number => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0);

function columnsOf(cluster: string, facts: (name: string) => TopicFacts | undefined): readonly Column<TopicRow>[] {
  const unknown = (row: TopicRow): string => facts(row.name)?.error ?? "…";
  return [
    {
      key: "name",
      title: "Topic",
      cell: (row) => (
        <>
          <a href={toTopic(cluster, row.name)}>{row.name}</a>
          {row.internal && <span class="tag">internal</span>}
        </>
      ),
      text: (row) => row.name,
      compare: byName,
    },
    {
      key: "state",
      title: "State",
      width: 130,
      cell: (row) => (row.unclean === 0 ? <Badge tone="ok">clean</Badge> : <Badge tone="warning">{row.unclean} unclean</Badge>),
      text: (row) => (row.unclean === 0 ? "clean" : `${row.unclean} partitions unclean`),
      compare: (left, right) => left.unclean - right.unclean || byName(left, right),
    },
    { key: "partitions", title: "Partitions", width: 96, right: true, cell: (row) => <Amount value={row.partitions} />, text: (row) => String(row.partitions), compare: (left, right) => left.partitions - right.partitions || byName(left, right) },
    { key: "replication", title: "Replicas", width: 90, right: true, wide: true, cell: (row) => row.replication, text: (row) => String(row.replication), compare: (left, right) => left.replication - right.replication || byName(left, right) },
    { key: "records", title: "Records", width: 100, right: true, cell: (row) => <Amount value={facts(row.name)?.records} unknown={unknown(row)} />, text: (row) => facts(row.name)?.records ?? "", compare: (left, right) => compareCounts(facts(left.name)?.records, facts(right.name)?.records) || byName(left, right) },
    { key: "bytes", title: "Size", width: 100, right: true, wide: true, cell: (row) => <Size facts={facts(row.name)} />, text: (row) => facts(row.name)?.bytes ?? "", compare: (left, right) => compareCounts(facts(left.name)?.bytes, facts(right.name)?.bytes) || byName(left, right) },
  ];
}

function Size({ facts }: { facts: TopicFacts | undefined }) {
  if (facts === undefined) return <span class="unknown">…</span>;
  return <Bytes value={facts.bytes} />;
}
