/** Brokers, their disks, and the settings of one. */

import { useMemo } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Broker, LogDir } from "../lib/contract";
import { bytes, compareCounts, integer } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { toBroker, toSection, toTopic } from "../lib/links";
import { useRead } from "../lib/reading";
import { Amount, AsOf, Badge, Bytes, Empty, Fact, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { Table, type Column } from "../ui/table";
import { Configs } from "./configs";

export function Brokers({ cluster }: { cluster: string }) {
  useTitle(`Brokers of ${cluster}`);
  const { answer, problem, busy, stale, reload } = useRead<readonly Broker[]>(inCluster(cluster, ["brokers"]), 10_000);
  const columns = useMemo(() => columnsOf(cluster), [cluster]);
  return (
    <>
      <Head title="Brokers" aside={<AsOf answer={answer} busy={busy} reload={reload} />} />
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? problem === null && <Loading what="the brokers" /> : <Table label="Brokers" rows={answer.data} columns={columns} rowKey={(row) => String(row.id)} sortKey="sort" keys stale={stale} empty={<Empty title="The cluster names no broker" />} />}
      <h2>Disks</h2>
      <Disks cluster={cluster} broker={null} />
    </>
  );
}

function columnsOf(cluster: string): readonly Column<Broker>[] {
  return [
    { key: "id", title: "Broker", width: 80, right: true, cell: (row) => <a href={toBroker(cluster, row.id)}>{row.id}</a>, compare: (left, right) => left.id - right.id },
    { key: "state", title: "State", width: 200, cell: (row) => <State row={row} />, text: (row) => (isDown(row) ? `down: ${row.error}` : (row.error ?? "")) },
    { key: "address", title: "Address", cell: (row) => addressOf(row) ?? <span class="soft">none</span>, text: (row) => addressOf(row) ?? "" },
    { key: "rack", title: "Rack", width: 110, wide: true, cell: (row) => row.rack ?? <span class="soft">none</span> },
    { key: "leaders", title: "Leaders", width: 90, right: true, cell: (row) => <Amount value={row.leaders} />, compare: (left, right) => left.leaders - right.leaders },
    { key: "replicas", title: "Replicas", width: 90, right: true, wide: true, cell: (row) => <Amount value={row.replicas} />, compare: (left, right) => left.replicas - right.replicas },
    { key: "out", title: "Out of sync", width: 100, right: true, cell: (row) => <Amount value={row.out_of_sync} />, compare: (left, right) => left.out_of_sync - right.out_of_sync },
    { key: "bytes", title: "Size", width: 100, right: true, cell: (row) => <Bytes value={row.bytes} />, compare: (left, right) => compareCounts(left.bytes, right.bytes) },
    { key: "dirs", title: "Disks", width: 70, right: true, wide: true, cell: (row) => <Amount value={row.dirs} /> },
  ];
}

/** A broker that holds replicas and is not there: the row has no host. */
const isDown = (row: Broker): boolean => row.host === "";

/** `host:port`, the host of IPv6 in brackets; null for a broker that is down. */
const addressOf = (row: Broker): string | null => (isDown(row) ? null : `${row.host.includes(":") ? `[${row.host}]` : row.host}:${row.port}`);

function State({ row }: { row: Broker }) {
  if (isDown(row)) {
    return (
      <Badge tone="error" title={row.error ?? undefined}>
        down
      </Badge>
    );
  }
  if (row.error !== null) return <Badge tone="error">{row.error}</Badge>;
  if (row.fenced) return <Badge tone="warning">fenced</Badge>;
  return (
    <>
      <Badge tone="ok">serving</Badge>
      {row.controller && <span class="tag">controller</span>}
    </>
  );
}

const used = (row: LogDir): number | null => {
  const [total, usable] = [integer(row.total), integer(row.usable)];
  return total === null || usable === null || total <= 0n ? null : 1 - Number(usable) / Number(total);
};

function Disks({ cluster, broker }: { cluster: string; broker: number | null }) {
  const { answer, problem, stale, reload } = useRead<readonly LogDir[]>(inCluster(cluster, ["logdirs"]), 30_000);
  const rows = useMemo(() => (answer?.data ?? []).filter((row) => broker === null || row.broker === broker), [answer, broker]);
  const columns = useMemo(
    (): readonly Column<LogDir>[] => [
      { key: "broker", title: "Broker", width: 80, right: true, cell: (row) => <a href={toBroker(cluster, row.broker)}>{row.broker}</a>, compare: (left, right) => left.broker - right.broker },
      { key: "path", title: "Log dir", cell: (row) => row.path, text: (row) => row.path },
      { key: "state", title: "State", width: 150, cell: (row) => (row.error === null ? <Badge tone="ok">online</Badge> : <Badge tone="error">{row.error}</Badge>), text: (row) => row.error ?? "online" },
      {
        key: "used",
        title: "Disk used",
        width: 170,
        cell: (row) => <Used row={row} />,
        text: (row) => (row.total === null ? "" : `${bytes(row.usable)} of ${bytes(row.total)} free`),
        compare: (left, right) => (used(left) ?? -1) - (used(right) ?? -1),
      },
      { key: "bytes", title: "Records here", width: 110, right: true, cell: (row) => <Bytes value={row.bytes} />, compare: (left, right) => compareCounts(left.bytes, right.bytes) },
      { key: "replicas", title: "Replicas", width: 90, right: true, wide: true, cell: (row) => <Amount value={row.replicas} /> },
      {
        key: "largest",
        title: "Largest partitions",
        wide: true,
        cell: (row) =>
          row.largest.slice(0, 3).map((each, index) => (
            <span key={index} class="inline">
              {index > 0 && ", "}
              <a href={toTopic(cluster, each.topic, "partitions")}>
                {each.topic}-{each.partition}
              </a>{" "}
              <span class="soft">{bytes(each.bytes)}</span>
            </span>
          )),
        text: (row) => row.largest.map((each) => `${each.topic}-${each.partition} ${bytes(each.bytes)}`).join(", "),
      },
    ],
    [cluster],
  );
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? problem === null && <Loading what="the disks" /> : <Table label="Log dirs" rows={rows} columns={columns} rowKey={(row) => `${row.broker} ${row.path}`} sortKey="disks" stale={stale} empty={<Empty title="No broker says what lies in its log dirs" />} />}
    </>
  );
}

function Used({ row }: { row: LogDir }) {
  const share = used(row);
  if (share === null) return <span class="unknown">unknown</span>;
  return (
    <span class="used">
      <meter min={0} max={1} low={0.7} high={0.85} optimum={0} value={share} aria-label="Share of the disk in use" /> {Math.round(share * 100)} %
    </span>
  );
}

export function BrokerPage({ cluster, broker }: { cluster: string; broker: string }) {
  useTitle(`Broker ${broker}`);
  const { answer, problem, busy, reload } = useRead<readonly Broker[]>(inCluster(cluster, ["brokers"]), 15_000);
  const row = answer?.data.find((each) => String(each.id) === broker);
  return (
    <div class="filled">
      <Head above={<a href={toSection(cluster, "brokers")}>Brokers</a>} title={`Broker ${broker}`} aside={<AsOf answer={answer} busy={busy} reload={reload} />}>
        {row && (
          <>
            <State row={row} />
            <Fact name="Address">{addressOf(row) ?? "none while it is down"}</Fact>
            <Fact name="Rack">{row.rack ?? "none"}</Fact>
            <Fact name="Leaders">
              <Amount value={row.leaders} />
            </Fact>
            <Fact name="Replicas">
              <Amount value={row.replicas} />
            </Fact>
          </>
        )}
      </Head>
      <ProblemBox problem={problem} retry={reload} />
      {answer !== null && row === undefined && <Empty title={`The cluster has no broker ${broker} now`}>It may be stopped: brokers that do not run are not named.</Empty>}
      {row && <Disks cluster={cluster} broker={row.id} />}
      <h2>Settings</h2>
      <Configs what="broker" read={inCluster(cluster, ["brokers", broker, "config"])} change={null} />
    </div>
  );
}
