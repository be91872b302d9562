/** What a share group gave up: its newest dead letters, and which of them were replayed. */

import { useMemo } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { DeadLetter, DeadLetters } from "../lib/contract";
import { compareCounts } from "../lib/format";
import { toRecord, toTopic } from "../lib/links";
import { useRead } from "../lib/reading";
import { Badge, Command, Empty, Loading, Partial, ProblemBox, Time } from "../ui/basics";
import { PayloadLine } from "../ui/payload";
import { Table, type Column } from "../ui/table";

const SETTING = "errors.deadletterqueue.topic.name";

export function DeadLettersTab({ cluster, group }: { cluster: string; group: string }) {
  const { answer, problem, stale, reload } = useRead<DeadLetters>(inCluster(cluster, ["group", "dead-letters"], { id: group }), 30_000);
  const topic = answer?.data.topic ?? "";
  const columns = useMemo(
    (): readonly Column<DeadLetter>[] => [
      { key: "time", title: "Given up", width: 170, cell: (row) => <Time ms={row.timestamp_ms} relative />, compare: (left, right) => compareCounts(left.timestamp_ms, right.timestamp_ms) },
      { key: "letter", title: "Letter", width: 90, cell: (row) => <a href={toRecord(cluster, topic, row.partition, row.offset)}>{`${row.partition}:${row.offset}`}</a>, text: (row) => `${topic}:${row.partition}:${row.offset}` },
      { key: "source", title: "Record", width: 200, cell: (row) => <a href={toRecord(cluster, row.source.topic, row.source.partition, row.source.offset)}>{sourceText(row)}</a>, text: sourceText, compare: (left, right) => sourceText(left).localeCompare(sourceText(right)) },
      { key: "deliveries", title: "Deliveries", width: 90, right: true, cell: (row) => row.delivery_count ?? "" },
      { key: "replayed", title: "Replayed", width: 110, cell: (row) => <Replayed row={row} /> },
      { key: "reason", title: "Reason", cell: (row) => row.reason ?? "", text: (row) => row.reason ?? "" },
      { key: "key", title: "Key", width: 120, wide: true, mono: true, cell: (row) => <PayloadLine payload={row.key} nothing="no key" /> },
      { key: "value", title: "Value", wide: true, mono: true, cell: (row) => <PayloadLine payload={row.value} nothing="no value" /> },
    ],
    [cluster, topic],
  );
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? (
        problem === null && <Loading what="the dead letters" />
      ) : answer.data.topic === null ? (
        <Empty title="The group has no dead-letter topic">Records that are rejected, or delivered too often, are dropped. The group's setting {SETTING} names a topic for them.</Empty>
      ) : !answer.data.exists ? (
        <Empty title="The group has given up nothing yet">Its dead-letter topic {answer.data.topic} does not exist.</Empty>
      ) : (
        <>
          <p class="soft">
            The newest {answer.data.rows.length} in <a href={toTopic(cluster, answer.data.topic)}>{answer.data.topic}</a>
            {answer.data.end === "end" ? "." : answer.data.end === "limit" ? "; there may be older ones." : "; the search for older ones took too long."} This command says what a replay would do:
          </p>
          <Command text={answer.data.command} />
          <Table label="Dead letters" rows={answer.data.rows} columns={columns} rowKey={(row) => `${row.partition}:${row.offset}`} sortKey="sort" fill keys stale={stale} empty={<Empty title="The group has given up nothing" />} />
        </>
      )}
    </>
  );
}

const sourceText = (row: DeadLetter): string => `${row.source.topic}:${row.source.partition}:${row.source.offset}`;

function Replayed({ row }: { row: DeadLetter }) {
  if (row.replay !== null)
    return (
      <Badge tone="ok" title={`to partition ${row.replay.partition}, offset ${row.replay.offset}`}>
        <Time ms={row.replay.at_ms} relative />
      </Badge>
    );
  return <span class="soft">{row.replayed === null ? "unknown" : "no"}</span>;
}
