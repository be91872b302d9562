/** Settings of a topic or a broker: what differs first, each with its default; changes with a preview. */

import { useMemo, useState } from "preact/hooks";
import type { ConfigRow } from "../lib/contract";
import { useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { Check, Empty, Field, Filter, Loading, Partial, ProblemBox } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { Icon } from "../ui/icons";
import { Table, type Column } from "../ui/table";

export function Configs({ what, read, change }: { what: string; read: string; change: string | null }) {
  const [text, setText] = useQuery("q");
  const [all, setAll] = useQuery("all", "1");
  const [name, setName] = useQuery("set");
  const { answer, problem, stale, reload } = useRead<readonly ConfigRow[]>(read, 30_000);
  const rows = useMemo(() => filtered(answer?.data ?? [], text, all !== "1"), [answer, text, all]);
  const columns = useMemo(() => columnsOf(change === null ? null : (row) => setName(row.name)), [change]);
  const edited = answer?.data.find((row) => row.name === name) ?? null;
  return (
    <>
      <div class="tools">
        <Filter label="Filter settings" value={text} onChange={setText} placeholder="Name, value or words of the description" />
        <Check label="Only what differs from the default" checked={all !== "1"} onChange={(checked) => setAll(checked ? "0" : "1")} />
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer === null ? (
        problem === null && <Loading what={`the settings of the ${what}`} />
      ) : (
        <Table
          label="Settings"
          rows={rows}
          columns={columns}
          rowKey={(row) => row.name}
          sortKey="sort"
          fill
          keys
          stale={stale}
          rowClass={(row) => (row.differs ? "differs" : undefined)}
          empty={<Empty title={text === "" ? `No setting of this ${what} differs from its default` : `No setting matches “${text}”`} />}
        />
      )}
      {edited !== null && change !== null && <Edit row={edited} path={change} onClose={() => setName("")} onDone={reload} />}
    </>
  );
}

function filtered(rows: readonly ConfigRow[], text: string, differing: boolean): readonly ConfigRow[] {
  const part = text.trim().toLowerCase();
  return rows.filter(
    (row) => (!differing || row.differs) && (part === "" || [row.name, row.value, row.documentation].some((each) => each?.toLowerCase().includes(part))),
  );
}

const shown = (row: ConfigRow): string => (row.sensitive ? "(secret)" : (row.value ?? "(none)"));

function columnsOf(edit: ((row: ConfigRow) => void) | null): readonly Column<ConfigRow>[] {
  return [
    {
      key: "name",
      title: "Setting",
      width: 320,
      cell: (row) =>
        edit !== null && !row.read_only ? (
          <button type="button" class="link" onClick={() => edit(row)}>
            {row.name}
          </button>
        ) : (
          row.name
        ),
      text: (row) => (row.documentation === null ? row.name : `${row.name}: ${row.documentation}`),
      compare: (left, right) => left.name.localeCompare(right.name),
    },
    { key: "value", title: "Value", width: 220, mono: true, cell: shown, text: shown },
    { key: "differs", title: "Default", width: 200, mono: true, wide: true, cell: (row) => <Default row={row} />, text: (row) => row.default ?? "", compare: (left, right) => Number(right.differs) - Number(left.differs) },
    { key: "source", title: "Set by", width: 110, cell: (row) => row.source, compare: (left, right) => left.source.localeCompare(right.source) },
    { key: "documentation", title: "What it does", wide: true, cell: (row) => <span class="soft">{row.documentation ?? ""}</span>, text: (row) => row.documentation ?? "" },
  ];
}

function Default({ row }: { row: ConfigRow }) {
  if (!row.differs) return <span class="soft">as the default</span>;
  return (
    <span class="differs-mark">
      <Icon name="edit" /> {row.sensitive ? "set" : (row.default ?? "(none)")}
    </span>
  );
}

function Edit({ row, path, onClose, onDone }: { row: ConfigRow; path: string; onClose: () => void; onDone: () => void }) {
  const [value, setValue] = useState(row.sensitive ? "" : (row.value ?? ""));
  const [back, setBack] = useState(false);
  // The values that the page showed: the server refuses when another hand has changed them since.
  const expect = row.sensitive || row.value === null ? null : { [row.name]: row.value };
  const body = back ? { set: {}, remove: [row.name], expect } : value === (row.value ?? "") && !row.sensitive ? null : { set: { [row.name]: value }, remove: [], expect };
  return (
    <ChangeDialog title={`Set ${row.name}`} path={path} body={body} verb={back ? "Remove the setting" : "Set it"} onClose={onClose} onDone={onDone}>
      {row.documentation !== null && <p class="soft">{row.documentation}</p>}
      <Field label={`Value (${row.type})`} wide hint={`now ${shown(row)}, set by ${row.source}; default ${row.default ?? "none"}`}>
        {row.type === "boolean" ? (
          <select value={value} disabled={back} onChange={(event) => setValue(event.currentTarget.value)}>
            <option value="true">true</option>
            <option value="false">false</option>
          </select>
        ) : (
          <input value={value} disabled={back} onInput={(event) => setValue(event.currentTarget.value)} spellcheck={false} autocomplete="off" autofocus />
        )}
      </Field>
      <Check label="Remove it, so that the default holds again" checked={back} onChange={setBack} />
    </ChangeDialog>
  );
}
