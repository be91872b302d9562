/** Ctrl-K: pages, topics, groups, brokers, transactions and users by name. */

import { useEffect, useRef, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Hit } from "../lib/contract";
import { useSettled } from "../lib/hooks";
import { toSection, toThing } from "../lib/links";
import { go } from "../lib/location";
import { useRead } from "../lib/reading";

interface Entry {
  readonly kind: string;
  readonly name: string;
  readonly text: string;
  readonly to: string;
}

/** The link of a search hit. */
export function hitLink(cluster: string, hit: Hit): string | null {
  return toThing(cluster, hit.kind, { topic: hit.name, group: hit.name, broker: hit.name, id: hit.name });
}

export function Palette({ cluster, sections, onClose }: { cluster: string; sections: readonly { title: string; to: string }[]; onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const asked = useSettled(text.trim(), 100);
  const found = useRead<readonly Hit[]>(asked === "" ? null : inCluster(cluster, ["search"], { q: asked, limit: "30" }));
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      dialog.current?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  const wanted = text.trim().toLowerCase();
  const pages: Entry[] = sections.filter(({ title }) => title.toLowerCase().includes(wanted)).map(({ title, to }) => ({ kind: "page", name: title, text: "", to }));
  const hits: Entry[] = (wanted === "" ? [] : (found.answer?.data ?? [])).flatMap((hit) => {
    const to = hitLink(cluster, hit);
    return to === null ? [] : [{ kind: hit.kind, name: hit.name, text: hit.text, to }];
  });
  const whole: Entry[] = wanted === "" ? [] : [{ kind: "search", name: `All results for “${text.trim()}”`, text: "", to: toSection(cluster, "search", { q: text.trim() }) }];
  const entries = [...pages.slice(0, wanted === "" ? 20 : 3), ...hits, ...whole];
  const chosen = Math.min(at, Math.max(0, entries.length - 1));

  useEffect(() => list.current?.querySelector(`[data-at="${chosen}"]`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  const open = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    go(entry.to);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setAt((chosen + step + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter") open(entries[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <div class="dialog-body">
        <input
          type="text"
          role="combobox"
          aria-label="Find a topic, group, broker or page"
          aria-expanded="true"
          aria-controls="found"
          aria-autocomplete="list"
          aria-activedescendant={entries.length > 0 ? `found-${chosen}` : undefined}
          placeholder="Topic, group, broker, transaction, user or page"
          value={text}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <ul id="found" ref={list} role="listbox" aria-label="Found">
          {entries.map((entry, index) => (
            <li key={`${entry.kind} ${entry.name}`} id={`found-${index}`} data-at={index} role="option" aria-selected={index === chosen} onMouseMove={() => setAt(index)} onClick={() => open(entry)}>
              <span class="kind">{entry.kind}</span>
              <span class="name">{entry.name}</span>
              <span class="soft">{entry.text}</span>
            </li>
          ))}
        </ul>
        <p class="soft" role="status">
          {found.problem ? found.problem.message : wanted !== "" && hits.length === 0 ? (found.busy || asked !== text.trim() ? "Searching …" : "No topic, group, broker, transaction or user has this in its name.") : ""}
        </p>
      </div>
    </dialog>
  );
}
