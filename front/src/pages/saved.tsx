/** Searches that this browser keeps, by topic. A search is its query string, so a link shares it with others. */

import { useState } from "preact/hooks";
import { setQuery, usePlace } from "../lib/location";
import { KEYS } from "../lib/search";
import { Action, Field } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icons";

interface Search {
  readonly name: string;
  readonly search: string;
}

const STORE = "tidelog.searches";

function all(): Record<string, Search[]> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, Search[]>) : {};
  } catch {
    return {};
  }
}

function keep(scope: string, searches: Search[]): void {
  try {
    localStorage.setItem(STORE, JSON.stringify({ ...all(), [scope]: searches }));
  } catch {
    // storage is full or switched off: the search stays in the address
  }
}

export function Saved({ scope }: { scope: string }) {
  const [open, setOpen] = useState(false);
  const [searches, setSearches] = useState<Search[]>(() => all()[scope] ?? []);
  const [name, setName] = useState("");
  const { search } = usePlace();
  const change = (next: Search[]): void => {
    keep(scope, next);
    setSearches(next);
  };
  const apply = (saved: string): void => {
    const query = new URLSearchParams(saved);
    setOpen(false);
    setQuery({ ...Object.fromEntries(KEYS.map((key) => [key, query.get(key) ?? undefined])), record: undefined }, true);
  };
  const save = (): void => {
    const query = new URLSearchParams(search);
    const kept = new URLSearchParams(KEYS.flatMap((key) => (query.has(key) ? [[key, query.get(key) ?? ""]] : [])));
    change([...searches.filter((each) => each.name !== name.trim()), { name: name.trim(), search: kept.toString() }]);
    setName("");
  };
  return (
    <>
      <Action onClick={() => setOpen(true)}>Saved searches{searches.length === 0 ? "" : ` (${searches.length})`}</Action>
      {open && (
        <Dialog title="Saved searches of this topic" onClose={() => setOpen(false)}>
          {searches.length === 0 && <p class="soft">None yet. They stay in this browser; the address of a search shares it.</p>}
          <ul class="saved">
            {searches.map((each) => (
              <li key={each.name}>
                <button type="button" class="link" onClick={() => apply(each.search)}>
                  {each.name}
                </button>
                <span class="soft mono">{each.search === "" ? "newest first" : decodeURIComponent(each.search.replaceAll("+", " "))}</span>
                <button type="button" class="quiet" onClick={() => change(searches.filter((other) => other !== each))} title={`Forget ${each.name}`}>
                  <Icon name="trash" />
                  <span class="hidden">Forget {each.name}</span>
                </button>
              </li>
            ))}
          </ul>
          <form
            class="row"
            onSubmit={(event) => {
              event.preventDefault();
              if (name.trim() !== "") save();
            }}
          >
            <Field label="Save the search of this page as">
              <input value={name} onInput={(event) => setName(event.currentTarget.value)} maxLength={80} />
            </Field>
            <Action type="submit" disabled={name.trim() === ""}>
              Save
            </Action>
          </form>
        </Dialog>
      )}
    </>
  );
}
