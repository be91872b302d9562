/** Records of a topic: from the newest, the oldest, an offset, a time, or as they come; filtered, decoded, one of them in full. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { inTopic } from "../lib/api";
import type { RecordRow, Topic } from "../lib/contract";
import { bytes, duration, exact, local, plural, short, utc } from "../lib/format";
import { useKeys } from "../lib/keys";
import { toRecord, toTopic } from "../lib/links";
import { setQuery, usePlace } from "../lib/location";
import { useRecordStream, type Found, type RecordStream } from "../lib/record_stream";
import { missing, toQuery, wanted, type Wanted } from "../lib/search";
import { useSession } from "../lib/session";
import { Action, Badge, Empty, ProblemBox, Time } from "../ui/basics";
import { Icon } from "../ui/icons";
import { PayloadLine } from "../ui/payload";
import { RecordState, RecordView } from "../ui/record";
import { Table, type Column } from "../ui/table";
import { SaveRecords } from "./save_records";
import { Saved } from "./saved";
import { SearchTools } from "./search_tools";

const keyOf = (row: RecordRow): string => `${row.partition}:${row.offset}`;

export function Messages({ cluster, topic }: { cluster: string; topic: Topic }) {
  const { search } = usePlace();
  const session = useSession();
  const want = useMemo(() => wanted(search), [search]);
  const lacks = missing(want);
  const asked = JSON.stringify(want);
  const tail = want.mode === "tail";
  const stream = useRecordStream(
    lacks === null ? asked : null,
    (cursor) => inTopic(cluster, topic.name, ["records"], toQuery(want, cursor)),
    tail,
  );
  const chosen = new URLSearchParams(search).get("record");
  const record = stream.found.rows.find((row) => keyOf(row) === chosen) ?? null;
  const open = useCallback((row: RecordRow) => setQuery({ record: keyOf(row) }), []);
  const states = useMemo(() => stream.found.rows.some((row) => row.state !== "plain"), [stream.found.rows]);
  const columns = useMemo(() => columnsOf(cluster, topic.name, want, states, record !== null), [cluster, topic.name, asked, states, record !== null]);
  useKeys({ escape: () => (chosen === null ? false : setQuery({ record: undefined })) });
  const decoders = { key: want.key === "auto" ? undefined : want.key, value: want.value === "auto" ? undefined : want.value };
  return (
    <>
      <SearchTools topic={topic} want={want} running={stream.running} onRun={stream.again} onStop={stream.stop} />
      {topic.masked && <p class="box note">Parts of these records are masked for your login.</p>}
      {lacks !== null ? (
        <Empty title={lacks} />
      ) : (
        <>
          <ProblemBox problem={stream.problem} retry={stream.again} />
          <Problems found={stream.found} />
          <Status stream={stream} tail={tail} want={want}>
            <Saved scope={`${cluster}/${topic.name}`} />
            <SaveRecords name={`${cluster}-${topic.name}`} rows={stream.found.rows} allowed={session.features["export"] !== false} />
          </Status>
          <div class={record === null ? "split" : "split open"}>
            <Table
              label="Records"
              rows={stream.found.rows}
              columns={columns}
              rowKey={keyOf}
              fill
              keys
              stale={stream.stale}
              current={chosen}
              onOpen={open}
              rowClass={(row) => (row.state === "aborted" || row.state === "control" ? "faint" : undefined)}
              empty={<NoRecords stream={stream} topic={topic} want={want} cluster={cluster} />}
            />
            {record !== null && (
              <aside class="panel" aria-label={`Record ${record.offset} of partition ${record.partition}`}>
                <header>
                  <h2>
                    Partition {record.partition}, offset {record.offset}
                  </h2>
                  <span class="spring" />
                  <a class="button quiet" href={toRecord(cluster, topic.name, record.partition, record.offset, decoders)} title="The record's own page">
                    <Icon name="link" /> Link
                  </a>
                  {topic.may.change && (
                    <a class="button quiet" href={toTopic(cluster, topic.name, "produce", { from: keyOf(record) })} title="A new record that begins as a copy of this one">
                      <Icon name="copy" /> Copy
                    </a>
                  )}
                  <button type="button" class="quiet" onClick={() => setQuery({ record: undefined })} title="Close (Esc)">
                    <Icon name="close" />
                    <span class="hidden">Close the record</span>
                  </button>
                </header>
                <RecordView key={keyOf(record)} cluster={cluster} topic={topic.name} record={record} decoders={decoders} masked={topic.masked} />
              </aside>
            )}
          </div>
        </>
      )}
    </>
  );
}

/** `narrow`: a record is open beside the table, which leaves time and size out. */
function columnsOf(cluster: string, topic: string, want: Wanted, states: boolean, narrow: boolean): readonly Column<RecordRow>[] {
  const decoders = { key: want.key === "auto" ? undefined : want.key, value: want.value === "auto" ? undefined : want.value };
  const columns: readonly Column<RecordRow>[] = [
    { key: "partition", title: "Part.", width: 56, right: true, cell: (row) => row.partition },
    { key: "offset", title: "Offset", width: 110, right: true, cell: (row) => <a href={toRecord(cluster, topic, row.partition, row.offset, decoders)}>{row.offset}</a>, text: (row) => row.offset },
    { key: "time", title: "Time", width: 200, wide: true, cell: (row) => <Time ms={row.timestamp_ms} />, text: (row) => utc(Number(row.timestamp_ms)) },
    { key: "key", title: "Key", width: 170, mono: true, cell: (row) => <PayloadLine payload={row.key} nothing="no key" /> },
    { key: "value", title: "Value", mono: true, cell: (row) => (row.state === "control" ? <RecordState record={row} /> : <PayloadLine payload={row.value} nothing="tombstone" />) },
    ...(states ? [{ key: "state", title: "State", width: 116, wide: true, cell: (row: RecordRow) => (row.state === "plain" ? null : <RecordState record={row} />) }] : []),
    { key: "size", title: "Size", width: 84, right: true, wide: true, cell: (row) => <span title={`${exact(row.size)} bytes`}>{bytes(row.size)}</span> },
  ];
  return narrow ? columns.filter((column) => column.key !== "time" && column.key !== "size") : columns;
}

function Problems({ found }: { found: Found }) {
  if (found.problems.length === 0) return null;
  return (
    <ul class="box warning" role="alert">
      {found.problems.map((each) => (
        <li key={each.partition}>
          <Icon name="warning" /> {each.partition === null ? "The cluster" : `Partition ${each.partition}`}: {each.error}
        </li>
      ))}
    </ul>
  );
}

const REASONS = { limit: "as many as asked for", end: "nothing is left in this direction", budget: "the search has read its share", time: "the search has used its time", failed: "it failed" } as const;

function statusText({ found, running }: RecordStream, tail: boolean): string {
  const count = plural(found.rows.length, "record");
  if (tail) return found.dropped === 0n ? `${count} shown` : `${count} shown, ${short(found.dropped)} left out, because more came than fit a screen`;
  const at = found.end ?? found.progress;
  const effort = at === null ? "" : `, ${short(at.scanned)} read (${bytes(at.bytes)}, ${duration(at.seconds * 1000)})`;
  if (running) return `${count} so far${effort}`;
  return found.end === null ? `${count}${effort}` : `${count}${effort}: ${REASONS[found.end.reason] ?? found.end.reason}`;
}

function Status({ stream, tail, want, children }: { stream: RecordStream; tail: boolean; want: Wanted; children: ComponentChildren }) {
  const text = statusText(stream, tail);
  const broken = stream.problem !== null || stream.found.end?.reason === "failed";
  return (
    <div class="status">
      {stream.running ? <Badge tone="busy">{tail ? "live" : "reading"}</Badge> : <Badge tone={broken ? "error" : "ok"}>{broken ? "broke off" : tail ? "paused" : stream.found.end === null ? "stopped" : "done"}</Badge>}
      <span>{text}</span>
      {want.mode === "time" && want.time !== "" && <span class="soft">from {local(Number(want.time))}</span>}
      <Announce text={text} />
      {!stream.running && stream.found.end !== null && stream.found.end.cursor !== null && (
        <Action icon="down" onClick={stream.more}>
          Go on
        </Action>
      )}
      <span class="spring" />
      {children}
    </div>
  );
}

/** Says a count to screen readers, at most once in four seconds. */
function Announce({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    const timer = setInterval(() => setSaid(latest.current), 4000);
    return () => clearInterval(timer);
  }, []);
  return (
    <span class="hidden" role="status" aria-live="polite">
      {said}
    </span>
  );
}

function NoRecords({ stream, topic, want, cluster }: { stream: RecordStream; topic: Topic; want: Wanted; cluster: string }) {
  const session = useSession();
  if (stream.problem !== null) return null;
  if (!stream.running && !stream.stale && stream.found.end === null) return <Empty title="Stopped before a record was found">Run it again, or begin elsewhere.</Empty>;
  if (stream.running || stream.found.end === null) {
    return <p class="loading">{want.mode === "tail" && stream.found.begin !== null ? "Waiting for records …" : "Reading records …"}</p>;
  }
  if (want.filter !== "") {
    return (
      <Empty title="No record passes the filter">
        {short(stream.found.end.scanned)} records were read.{" "}
        {stream.found.end.cursor === null ? "All that the search covers is read: look at the filter, the partitions and the place where it begins." : "Go on to read further, or begin elsewhere."}
      </Empty>
    );
  }
  if (topic.records === "0") {
    const server = session.clusters.find((each) => each.id === cluster)?.bootstrap ?? "HOST:PORT";
    return (
      <Empty title="The topic is empty" command={`echo hello | tidelog console-producer --bootstrap-server ${server} --topic ${topic.name}`}>
        Records were never written, or retention has removed them. Write one:
      </Empty>
    );
  }
  return <Empty title="No records here">The chosen partitions have none at or after the place where this begins. Records of aborted transactions and markers are shown only when asked for.</Empty>;
}
