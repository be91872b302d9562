/** Transactions: the list of coordinators, and one with its partitions, which can be ended. */

import { useMemo, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Transaction, TransactionRow } from "../lib/contract";
import { compareCounts, duration } from "../lib/format";
import { useNow, useTitle } from "../lib/hooks";
import { toBroker, toSection, toTopic, toTransaction } from "../lib/links";
import { useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { Action, AsOf, Badge, Choice, Copy, Empty, Exact, Fact, Filter, Head, Loading, Partial, ProblemBox, Time, type Tone } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { Table, type Column } from "../ui/table";

const TONES: Readonly<Record<string, Tone>> = { Ongoing: "busy", PrepareCommit: "warning", PrepareAbort: "warning", PrepareEpochFence: "warning", CompleteCommit: "ok", CompleteAbort: "ok", Empty: "idle", Dead: "idle" };

function TransactionState({ state }: { state: string }) {
  return <Badge tone={TONES[state] ?? "note"}>{state}</Badge>;
}

export function Transactions({ cluster }: { cluster: string }) {
  useTitle(`Transactions of ${cluster}`);
  const [text, setText] = useQuery("q");
  const [state, setState] = useQuery("state");
  const { answer, problem, busy, stale, reload } = useRead<readonly TransactionRow[]>(inCluster(cluster, ["transactions"]), 10_000);
  const rows = useMemo(() => {
    const part = text.trim().toLowerCase();
    return (answer?.data ?? []).filter((row) => (part === "" || row.id.toLowerCase().includes(part) || row.producer_id === part) && (state === "" || row.state === state));
  }, [answer, text, state]);
  const columns = useMemo(
    (): readonly Column<TransactionRow>[] => [
      { key: "id", title: "Transactional id", cell: (row) => <a href={toTransaction(cluster, row.id)}>{row.id === "" ? "(empty name)" : row.id}</a>, text: (row) => row.id, compare: (left, right) => left.id.localeCompare(right.id) },
      { key: "state", title: "State", width: 180, cell: (row) => <TransactionState state={row.state} />, compare: (left, right) => left.state.localeCompare(right.state) },
      { key: "producer", title: "Producer id", width: 150, right: true, cell: (row) => <Exact value={row.producer_id} />, compare: (left, right) => compareCounts(left.producer_id, right.producer_id) },
      { key: "coordinator", title: "Coordinator", width: 110, right: true, wide: true, cell: (row) => <a href={toBroker(cluster, row.coordinator)}>{row.coordinator}</a>, compare: (left, right) => left.coordinator - right.coordinator },
    ],
    [cluster],
  );
  const states = [["", "all"] as const, ...[...new Set((answer?.data ?? []).map((row) => row.state))].sort().map((each) => [each, each] as const)];
  return (
    <div class="filled">
      <Head title="Transactions" aside={<AsOf answer={answer} busy={busy} reload={reload} />}>
        {answer && <span role="status">{rows.length === answer.data.length ? `${rows.length} known to their coordinators` : `${rows.length} of ${answer.data.length}`}</span>}
      </Head>
      <div class="tools">
        <Filter label="Filter transactions" value={text} onChange={setText} placeholder="Part of an id, or a producer id" />
        <Choice label="State" value={state} options={states} onChange={setState} />
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? (
        problem === null && <Loading what="the transactions" />
      ) : (
        <Table
          label="Transactions"
          rows={rows}
          columns={columns}
          rowKey={(row) => row.id}
          sortKey="sort"
          fill
          keys
          stale={stale}
          empty={answer.data.length === 0 ? <Empty title="No transactional producer has been here">Transactions that hang, which no coordinator knows, show on the page Health.</Empty> : <Empty title="No transaction matches" />}
        />
      )}
    </div>
  );
}

export function TransactionPage({ cluster, id }: { cluster: string; id: string }) {
  useTitle(`Transaction ${id}`);
  const [ending, setEnding] = useState(false);
  const { answer, problem, busy, stale, reload } = useRead<Transaction>(inCluster(cluster, ["transaction"], { id }), 5000);
  const data = answer?.data;
  return (
    <>
      <Head
        above={<a href={toSection(cluster, "transactions")}>Transactions</a>}
        title={
          <>
            {id === "" ? "(empty name)" : id} <Copy text={id} what="the transactional id" />
          </>
        }
        aside={
          <>
            <AsOf answer={answer} busy={busy} reload={reload} />
            {data?.may.change && data.state === "Ongoing" && (
              <Action icon="stop" onClick={() => setEnding(true)}>
                Abort
              </Action>
            )}
          </>
        }
      >
        {data && (
          <>
            <TransactionState state={data.state} />
            <Fact name="Producer">
              <Exact value={data.producer_id} />
            </Fact>
            <Fact name="Epoch">{data.producer_epoch}</Fact>
            <Fact name="Coordinator">
              <a href={toBroker(cluster, data.coordinator)}>broker {data.coordinator}</a>
            </Fact>
          </>
        )}
      </Head>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? (
        problem === null && <Loading what="the transaction" />
      ) : (
        <div class={stale ? "stale" : undefined}>
          <Running transaction={data} />
          <h2>Partitions in it</h2>
          {data.partitions.length === 0 ? (
            <p class="soft">none</p>
          ) : (
            <ul>
              {data.partitions.map((each) => (
                <li key={each.topic}>
                  <a href={toTopic(cluster, each.topic, "producers")}>{each.topic}</a>: {each.partitions.join(", ")}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
      {ending && <ChangeDialog title={`Abort the transaction of ${id}`} path={inCluster(cluster, ["transaction", "terminate"])} body={{ id }} verb="Abort it" danger onClose={() => setEnding(false)} onDone={reload} />}
    </>
  );
}

const OPEN = /^(Ongoing|Prepare)/;

function Running({ transaction }: { transaction: Transaction }) {
  const now = useNow(1000);
  if (transaction.started_ms === null) return <p class="soft">No transaction is open.</p>;
  if (!OPEN.test(transaction.state)) {
    return (
      <p class="soft">
        No transaction is open. The last one began at <Time ms={transaction.started_ms} />.
      </p>
    );
  }
  const ends = Number(transaction.started_ms) + Number(transaction.timeout_ms ?? 0);
  return (
    <p>
      Open since <Time ms={transaction.started_ms} /> ({duration(now - Number(transaction.started_ms))}).{" "}
      {transaction.timeout_ms !== null && (ends > now ? `Its coordinator aborts it in ${duration(ends - now)} unless the producer ends it.` : `Its timeout of ${duration(Number(transaction.timeout_ms))} is over.`)} Readers of committed records wait at
      its first record in each partition.
    </p>
  );
}
