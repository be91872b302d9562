/** The controls above the records. What they say goes into the address; Enter or the button runs it. */

import { useEffect, useState } from "preact/hooks";
import type { Topic } from "../lib/contract";
import { useSettled } from "../lib/hooks";
import { setQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { decoders, fromField, MODES, toField, type Wanted } from "../lib/search";
import { useSession } from "../lib/session";
import { Action, Check, Choice, Field } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icons";

const LIMITS = ["20", "50", "100", "200", "500"].map((each) => [each, each] as const);

interface Checked {
  readonly ok: boolean;
  readonly error: string | null;
  readonly at: number | null;
}

export function SearchTools({ topic, want, running, onRun, onStop }: { topic: Topic; want: Wanted; running: boolean; onRun: () => void; onStop: () => void }) {
  const session = useSession();
  const [filter, setFilter] = useState(want.filter);
  const [partitions, setPartitions] = useState(want.partitions.join(","));
  const [help, setHelp] = useState(false);
  // Back and forward change the address: the fields follow.
  useEffect(() => setFilter(want.filter), [want.filter]);
  useEffect(() => setPartitions(want.partitions.join(",")), [want.partitions.join(",")]);
  const settled = useSettled(filter.trim(), 250);
  const check = useRead<Checked>(settled === "" ? null : `filter/check?${new URLSearchParams({ text: settled }).toString()}`);
  const checked = check.stale || settled !== filter.trim() ? null : (check.answer?.data ?? null);
  const fresh = filter.trim() === want.filter && partitions === want.partitions.join(",");
  const set = (changes: Record<string, string | undefined>): void => setQuery({ ...changes, record: undefined });
  const run = (): void => {
    if (fresh) onRun();
    else set({ filter: filter.trim(), partition: partitions.replace(/\s+/g, "") });
  };
  const names = decoders(session.features);
  return (
    <form
      class="search-tools"
      role="search"
      aria-label="Records"
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <div class="tools">
        <Choice label="Begin" hidden value={want.mode} options={MODES} onChange={(mode) => set({ mode: mode === "newest" ? "" : mode })} />
        {want.mode === "offset" && (
          <Field label="Offset">
            <input inputMode="numeric" size={14} value={want.offset} onChange={(event) => set({ offset: event.currentTarget.value.trim() })} autofocus={want.offset === ""} />
          </Field>
        )}
        {want.mode === "time" && (
          <Field label="Local time">
            <input type="datetime-local" step={1} value={toField(want.time)} onChange={(event) => set({ time: fromField(event.currentTarget.value) })} />
          </Field>
        )}
        <label class="filter grow">
          <span class="hidden">Filter of records</span>
          <Icon name="search" />
          <input
            data-filter
            class="mono"
            value={filter}
            placeholder={'value.amount > 100 and key startswith "a"'}
            maxLength={2000}
            spellcheck={false}
            autocomplete="off"
            aria-invalid={checked?.ok === false}
            aria-describedby="filter-problem"
            onInput={(event) => setFilter(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape") return;
              event.preventDefault();
              if (event.currentTarget.value !== "") setFilter("");
              else event.currentTarget.blur();
            }}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <button type="button" class="quiet" onClick={() => setHelp(true)} title="The filter language">
          ?<span class="hidden"> The filter language</span>
        </button>
        {/* Keys: a button that became another's during its click would also submit the form. */}
        {running ? (
          <Action key="stop" icon="stop" onClick={onStop}>
            Stop
          </Action>
        ) : (
          <Action key="run" icon={fresh ? "reload" : "play"} type="submit" primary={!fresh}>
            {fresh ? "Again" : "Run"}
          </Action>
        )}
      </div>
      <p id="filter-problem" class={checked?.ok === false ? "filter-problem" : "hidden"} role="status">
        {checked?.ok === false && (
          <>
            <Icon name="error" /> {checked.error}
            {checked.at !== null && (
              <code>
                {settled.slice(0, checked.at)}
                <mark>{settled.slice(checked.at) === "" ? "…" : settled.slice(checked.at)}</mark>
              </code>
            )}
          </>
        )}
      </p>
      <details class="more" open={want.partitions.length > 0 || want.key !== "auto" || want.value !== "auto" || want.aborted || want.control}>
        <summary>Partitions, decoders, how many</summary>
        <div class="tools">
          <Field label="Partitions" hint={`of 0 to ${topic.partitions.length - 1}; empty: all`}>
            <input size={10} value={partitions} placeholder="0,2,5-7" onInput={(event) => setPartitions(event.currentTarget.value)} />
          </Field>
          {want.mode !== "tail" && <Choice label="Records" value={want.limit} options={LIMITS} onChange={(limit) => set({ limit: limit === "50" ? "" : limit })} />}
          <Choice label="Key" value={want.key} options={names} onChange={(key) => set({ key: key === "auto" ? "" : key })} />
          <Choice label="Value" value={want.value} options={names} onChange={(value) => set({ value: value === "auto" ? "" : value })} />
          <Check label="Aborted transactions" checked={want.aborted} onChange={(on) => set({ aborted: on ? "1" : "" })} />
          <Check label="Markers" checked={want.control} onChange={(on) => set({ control: on ? "1" : "" })} />
        </div>
      </details>
      {help && <FilterHelp onClose={() => setHelp(false)} />}
    </form>
  );
}

const EXAMPLES: readonly (readonly [string, string])[] = [
  ['"abc"', "key or value contains it"],
  ["value.amount > 100", "a field inside of JSON; numbers compare exactly, 64-bit ones too"],
  ['value.items[0].sku in ["a", "b"]', "an element, one of several"],
  ['key startswith "user-"', "also: contains, endswith, matches (a regular expression)"],
  ['value contains i "error"', "i: upper and lower case are alike"],
  ['header["trace"] == "7f"', "a header"],
  ["has(value.error)", "the field is there"],
  ["value == null", "tombstones"],
  ['timestamp >= "2026-11-28T06:00:00Z"', "a time; also: timestamp > now - 15m"],
  ["partition == 3 and offset < 1000", "a place"],
  ["size(value) > 10000", "bytes"],
  ['not (key == "a" or key == "b")', "and, or, not"],
];

function FilterHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="The filter language" onClose={onClose} wide>
      <dl class="examples">
        {EXAMPLES.map(([text, what]) => (
          <div key={text}>
            <dt>
              <code>{text}</code>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="soft">A field that is missing equals nothing and is no error. The server runs the filter; a search ends after its share of bytes or time, and goes on when asked.</p>
    </Dialog>
  );
}
