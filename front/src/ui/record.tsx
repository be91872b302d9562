/** Everything about one record. */

import { useState } from "preact/hooks";
import { inTopic } from "../lib/api";
import type { RecordPage, RecordRow } from "../lib/contract";
import { useRead } from "../lib/reading";
import { useSession } from "../lib/session";
import { Badge, Bytes, Exact, Fact, ProblemBox, Time, type Tone } from "./basics";
import { PayloadView } from "./payload";

const STATES: Readonly<Record<RecordRow["state"], readonly [Tone, string, string]>> = {
  plain: ["ok", "plain", "written outside of a transaction"],
  committed: ["ok", "committed", "its transaction is committed"],
  aborted: ["warning", "aborted", "its transaction was aborted: read_committed consumers do not see it"],
  open: ["busy", "open", "its transaction is not over: read_committed consumers wait here"],
  control: ["note", "marker", "written by a transaction coordinator, no consumer is given it"],
};

export function RecordState({ record }: { record: RecordRow }) {
  const [tone, word, title] = STATES[record.state] ?? (["idle", record.state, ""] as const);
  return (
    <Badge tone={tone} title={title}>
      {record.control === null ? word : `${record.control} ${word}`}
    </Badge>
  );
}

/** Query parameters of the decoders, as the API takes them. */
export type Decoders = Readonly<Record<"key" | "value", string | undefined>>;

export function recordPath(cluster: string, topic: string, record: { partition: number | string; offset: string }, decoders: Decoders, full: boolean): string {
  return inTopic(cluster, topic, ["records", record.partition, record.offset], { key: decoders.key, value: decoders.value, full: full ? "1" : undefined });
}

export function RecordView({ cluster, topic, record, decoders, masked }: { cluster: string; topic: string; record: RecordRow; decoders: Decoders; masked: boolean }) {
  const { limits } = useSession();
  const [whole, setWhole] = useState(false);
  const full = useRead<RecordPage>(whole ? recordPath(cluster, topic, record, decoders, true) : null);
  const shown = full.answer?.data.record ?? record;
  const raw = (part: "key" | "value"): string | undefined =>
    masked || record[part] === null ? undefined : `api/v1/${inTopic(cluster, topic, ["records", record.partition, record.offset, "raw"], { part })}`;
  const onFull = whole ? undefined : () => setWhole(true);
  return (
    <div class={whole && full.busy ? "record stale" : "record"} aria-busy={whole && full.busy}>
      <div class="head-facts">
        <RecordState record={record} />
        <Fact name="Time">
          <Time ms={record.timestamp_ms} />
          <span class="soft"> {record.timestamp_type === "append" ? "set by the broker" : record.timestamp_type === "create" ? "set by the producer" : ""}</span>
        </Fact>
        <Fact name="Size">
          <Bytes value={record.size} />
        </Fact>
      </div>
      <ProblemBox problem={whole ? full.problem : null} retry={full.reload} />
      <PayloadView name="Key" payload={shown.key} nothing="null: records without a key go to any partition" download={raw("key")} onFull={onFull} fullBytes={limits.full_bytes} />
      <PayloadView name="Value" payload={shown.value} nothing="null: a tombstone, which removes the key where the topic is compacted" download={raw("value")} onFull={onFull} fullBytes={limits.full_bytes} />
      <section aria-label="Headers">
        <h3>Headers</h3>
        {shown.headers.length === 0 ? (
          <p class="soft">none</p>
        ) : (
          <dl class="headers">
            {shown.headers.map((header, index) => (
              <div key={index}>
                <dt>{header.name}</dt>
                <dd>
                  {header.value === null ? <span class="tag">null</span> : <span class="mono">{header.value.text}</span>}
                  {header.value !== null && header.value.decoder !== "text" && <span class="tag">{header.value.decoder}</span>}
                  {header.value?.cut && <span class="tag">cut</span>}
                </dd>
              </div>
            ))}
          </dl>
        )}
      </section>
      <section aria-label="Batch">
        <h3>Batch</h3>
        <div class="head-facts">
          <Fact name="Compression">{record.batch.compression}</Fact>
          <Fact name="Leader epoch">{record.batch.leader_epoch}</Fact>
          {record.batch.producer_id !== "-1" && (
            <>
              <Fact name="Producer">
                <Exact value={record.batch.producer_id} />
              </Fact>
              <Fact name="Producer epoch">{record.batch.producer_epoch}</Fact>
              <Fact name="Sequence">{record.batch.sequence}</Fact>
            </>
          )}
          <Fact name="Transactional">{record.batch.transactional ? "yes" : "no"}</Fact>
        </div>
      </section>
    </div>
  );
}
