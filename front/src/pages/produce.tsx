/** Writes a record, new or begun as a copy of another. */

import { useEffect, useState } from "preact/hooks";
import { inTopic } from "../lib/api";
import type { Payload, Plan, RecordPage, Topic } from "../lib/contract";
import { toRecord } from "../lib/links";
import { useQuery } from "../lib/location";
import { draftOf, EMPTY, ENCODINGS, fault, partOf, toBody, type Draft, type Encoding, type Part } from "../lib/produce";
import { useRead } from "../lib/reading";
import { useSession } from "../lib/session";
import { Action, Empty, Field, Loading, ProblemBox } from "../ui/basics";
import { Change } from "../ui/change";
import { Icon } from "../ui/icons";
import { recordPath } from "../ui/record";

const KEPT = "tidelog.draft";

function kept(): Draft {
  try {
    const draft: unknown = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    return draft !== null && typeof draft === "object" ? { ...EMPTY, ...draft } : EMPTY;
  } catch {
    return EMPTY;
  }
}

export function Produce({ cluster, topic }: { cluster: string; topic: Topic }) {
  const [from] = useQuery("from");
  const [partition, offset] = from.split(":");
  const path = (key?: string, value?: string): string | null =>
    from === "" || partition === undefined || offset === undefined ? null : recordPath(cluster, topic.name, { partition, offset }, { key, value }, true);
  const first = useRead<RecordPage>(path());
  const seen = first.answer?.data.record ?? null;
  const [key, value] = [packed(seen?.key), packed(seen?.value)];
  const again = useRead<RecordPage>(seen === null || (key ?? value) === undefined ? null : path(key, value));
  const source = (key ?? value) === undefined ? first : again;
  if (!topic.may.change) return <Empty title="Your login may not write to this topic">The operator of this console gives the right “change” by topic name; a read-only console writes nothing.</Empty>;
  if (from === "") return <Form cluster={cluster} topic={topic} begin={kept()} lacks={[]} from="" />;
  if (source.answer === null) return source.problem === null ? <Loading what="the record to copy" /> : <ProblemBox problem={source.problem} retry={source.reload} />;
  const record = source.answer.data.record;
  if (record === null) return <Empty title="The record to copy is gone">{source.answer.data.reason}</Empty>;
  const { draft, lacks } = draftOf(record);
  return <Form key={from} cluster={cluster} topic={topic} begin={draft} lacks={lacks} from={from} />;
}

/** The decoder that shows all bytes of a payload which is shown decoded; undefined where its text does. */
const packed = (payload: Payload | null | undefined): string | undefined => (payload && !payload.masked && partOf(payload) === null ? "base64" : undefined);

function Form({ cluster, topic, begin, lacks, from }: { cluster: string; topic: Topic; begin: Draft; lacks: readonly string[]; from: string }) {
  const { limits } = useSession();
  const [draft, setDraft] = useState(begin);
  const [plan, setPlan] = useState<Plan | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    try {
      if (from === "") sessionStorage.setItem(KEPT, JSON.stringify(draft));
    } catch {
      // too large to keep
    }
  }, [draft, from]);
  const set = (part: Partial<Draft>): void => {
    setDraft({ ...draft, ...part });
    setPlan(null);
  };
  const written = plan?.done && plan.offset !== null && plan.offset !== undefined ? { partition: plan.partition ?? 0, offset: plan.offset } : null;
  return (
    <div class="scroll">
      <h2 class="hidden">A new record</h2>
      {from !== "" && <p class="soft">Begun as a copy of partition {from.replace(":", ", offset ")}; it goes to the partition of its key, with the time of sending.</p>}
      {lacks.length > 0 && (
        <p class="box warning">
          <Icon name="warning" /> Not taken over, because the console shows it decoded, cut or masked: {lacks.join(", ")}.
        </p>
      )}
      <Change key={round} title={`Write a record to ${topic.name}`} path={inTopic(cluster, topic.name, ["records"])} body={toBody(draft)} verb="Write the record" onDone={setPlan}>
        <PartField name="Key" part={draft.key} rows={1} onChange={(key) => set({ key })} />
        <PartField name="Value" part={draft.value} rows={8} onChange={(value) => set({ value })} most={limits.produce_bytes} />
        <fieldset>
          <legend>Headers</legend>
          {draft.headers.map((header, index) => {
            const replace = (next: Partial<Draft["headers"][number]>): void => set({ headers: draft.headers.map((each, at) => (at === index ? { ...each, ...next } : each)) });
            return (
              <div class="header-row" key={index}>
                <Field label="Name">
                  <input value={header.name} onInput={(event) => replace({ name: event.currentTarget.value })} spellcheck={false} />
                </Field>
                <PartField name={`Header ${index + 1}`} part={header} rows={1} onChange={replace} />
                <Action icon="trash" onClick={() => set({ headers: draft.headers.filter((_, at) => at !== index) })}>
                  Remove
                </Action>
              </div>
            );
          })}
          <Action icon="plus" onClick={() => set({ headers: [...draft.headers, { name: "", encoding: "text", data: "" }] })}>
            Add a header
          </Action>
        </fieldset>
        <div class="row">
          <Field label="Partition" hint="empty: by the key">
            <input inputMode="numeric" size={6} value={draft.partition} onInput={(event) => set({ partition: event.currentTarget.value.trim() })} />
          </Field>
          <Field label="Timestamp in ms" hint="empty: the time of sending">
            <input inputMode="numeric" size={16} value={draft.timestamp} onInput={(event) => set({ timestamp: event.currentTarget.value.trim() })} />
          </Field>
        </div>
      </Change>
      {written && (
        <p class="box ok" role="status">
          <Icon name="ok" /> Written to <a href={toRecord(cluster, topic.name, written.partition, written.offset)}>partition {written.partition}, offset {written.offset}</a>.{" "}
          <button
            type="button"
            onClick={() => {
              setPlan(null);
              setRound(round + 1);
            }}
          >
            Write another
          </button>
        </p>
      )}
    </div>
  );
}

function PartField({ name, part, rows, onChange, most }: { name: string; part: Part; rows: number; onChange: (part: Part) => void; most?: number }) {
  const wrong = part.encoding === "json" && part.data === "" ? null : fault(part);
  const hint = wrong ?? (most !== undefined && part.data.length > most ? `more than the console sends (${most} bytes)` : undefined);
  return (
    <div class="part-field">
      <label class="field bare">
        <span class="hidden">{name}: encoding</span>
        <select value={part.encoding} onChange={(event) => onChange({ encoding: event.currentTarget.value as Encoding, data: part.data })}>
          {ENCODINGS.map(([id, title]) => (
            <option key={id} value={id} selected={id === part.encoding}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <Field label={name} wide hint={hint}>
        {part.encoding === "null" ? (
          <input value="" placeholder="null" disabled />
        ) : (
          <textarea class="mono" rows={rows} value={part.data} spellcheck={false} onInput={(event) => onChange({ encoding: part.encoding, data: event.currentTarget.value })} />
        )}
      </Field>
    </div>
  );
}
