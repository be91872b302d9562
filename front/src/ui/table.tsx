/** A table of any length: rows of one height, of which only those in sight stand in the document. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { csv, save } from "../lib/csv";
import { useMedia, useSettled, useSize } from "../lib/hooks";
import { useKeys } from "../lib/keys";
import { useQuery } from "../lib/location";
import { inOrder } from "../lib/order";
import { reveal, span } from "../lib/virtual";
import { Action } from "./basics";
import { Icon } from "./icons";

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  /** Pixels; a column without a width takes a share of what is left. */
  readonly width?: number;
  readonly right?: boolean;
  readonly mono?: boolean;
  /** Left out on narrow screens. */
  readonly wide?: boolean;
  readonly cell: (row: T) => ComponentChildren;
  readonly compare?: (left: T, right: T) => number;
  /** The text of the cell in an exported file, and its title. */
  readonly text?: (row: T) => string;
}

export interface TableProps<T> {
  /** What the rows are: the table's accessible name. */
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly rowKey: (row: T) => string;
  /** The key of the query string that holds the order; without it rows stay as they come. */
  readonly sortKey?: string;
  /** `name`, or `-lag` for descending. */
  readonly sorted?: string;
  /** Takes the height that is left on the page. */
  readonly fill?: boolean;
  /** Drawn dimmed, because newer rows are on their way. */
  readonly stale?: boolean;
  /** Marked row. */
  readonly current?: string | null;
  readonly onOpen?: (row: T) => void;
  /** Called with the rows in sight after scrolling has settled. */
  readonly onVisible?: (rows: readonly T[]) => void;
  /** j and k move through this table; one table a page. */
  readonly keys?: boolean;
  readonly rowClass?: (row: T) => string | undefined;
  readonly empty?: ComponentChildren;
}

const HEADER = 30;
/** The widest column with a width, on narrow screens. */
const NARROW = 112;

export function Table<T>(props: TableProps<T>) {
  const { rows, rowKey, keys = false, current = null } = props;
  const box = useRef<HTMLDivElement>(null);
  const height = useMedia("(pointer: coarse)") ? 40 : 28;
  const narrow = useMedia("(max-width: 640px)");
  const columns = useMemo(
    () => (narrow ? narrowed(props.columns) : props.columns),
    [narrow, props.columns],
  );
  const [order, setOrder] = useQuery(props.sortKey ?? "", props.sorted ?? "");
  const ordered = useMemo(() => inOrder(rows, props.columns, props.sortKey === undefined ? "" : order), [rows, props.columns, order, props.sortKey]);
  const [top, setTop] = useState(0);
  const size = useSize(box);
  const { first, end, before, after } = span(top * height, size.height || 600, height, ordered.length);
  const active = useActive({ box, ordered, height, keys, rowKey, current, onOpen: props.onOpen });
  useVisible(ordered, Math.floor(top), Math.min(ordered.length, top + Math.ceil((size.height || 600) / height) + 1), props.onVisible);

  if (ordered.length === 0 && props.empty) return <>{props.empty}</>;
  const least = columns.reduce((sum, column) => sum + (column.width ?? 140), 0);
  return (
    <div
      ref={box}
      class={`table-box${props.fill ? " fill" : ""}${props.stale ? " stale" : ""}`}
      tabIndex={0}
      role="region"
      aria-label={props.label}
      aria-busy={props.stale}
      onScroll={(event) => setTop(Math.floor(event.currentTarget.scrollTop / height))}
    >
      <table aria-label={props.label} aria-rowcount={ordered.length + 1} style={{ minWidth: `${least}px` }}>
        <colgroup>
          {columns.map((column) => (
            <col key={column.key} style={column.width === undefined ? {} : { width: `${column.width}px` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <Heading key={column.key} column={column} order={props.sortKey === undefined ? null : order} onOrder={setOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Gap pixels={before} columns={columns.length} />}
          {ordered.slice(first, end).map((row, index) => {
            const at = first + index;
            const key = rowKey(row);
            return (
              <tr
                key={key}
                data-row={at}
                aria-rowindex={at + 2}
                aria-current={key === current ? "true" : undefined}
                class={`${at % 2 === 1 ? "odd " : ""}${active.at === at ? "active " : ""}${props.rowClass?.(row) ?? ""}`}
                onClick={(event) => active.click(event, at)}
              >
                {columns.map((column) => (
                  <td key={column.key} class={`${column.right ? "right " : ""}${column.mono ? "mono" : ""}`} title={column.text?.(row)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {after > 0 && <Gap pixels={after} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

/** The columns that a narrow screen has room for; one of them takes what is left. */
function narrowed<T>(columns: readonly Column<T>[]): readonly Column<T>[] {
  const kept = columns.filter((column) => !column.wide);
  const grows = kept.some((column) => column.width === undefined);
  return kept.map(({ width, ...column }, index) => (width === undefined || (!grows && index === 0) ? column : { ...column, width: Math.min(width, NARROW) }));
}

function Gap({ pixels, columns }: { pixels: number; columns: number }) {
  return (
    <tr aria-hidden="true" class="gap">
      <td colSpan={columns} style={{ height: `${pixels}px` }} />
    </tr>
  );
}

function Heading<T>({ column, order, onOrder }: { column: Column<T>; order: string | null; onOrder: (order: string) => void }) {
  const direction = order === column.key ? "ascending" : order === `-${column.key}` ? "descending" : undefined;
  if (column.title === "") return <td />;
  if (order === null || column.compare === undefined) {
    return (
      <th scope="col" class={column.right ? "right" : undefined}>
        {column.title}
      </th>
    );
  }
  return (
    <th scope="col" class={column.right ? "right" : undefined} aria-sort={direction}>
      <button type="button" class="sort" onClick={() => onOrder(direction === "ascending" ? `-${column.key}` : column.key)}>
        {column.title}
        {direction && <Icon name={direction === "ascending" ? "up" : "down"} />}
      </button>
    </th>
  );
}

function useVisible<T>(rows: readonly T[], first: number, end: number, call: ((rows: readonly T[]) => void) | undefined): void {
  const settled = useSettled(`${first}-${end}`, 120);
  useEffect(() => {
    const [from, to] = settled.split("-").map(Number) as [number, number];
    call?.(rows.slice(from, to));
  }, [settled, rows, call]);
}

/** The row that j and k moved to. Its link has the focus, so Enter opens it and a screen reader reads it. */
function useActive<T>({ box, ordered, height, keys, rowKey, current, onOpen }: {
  box: { readonly current: HTMLDivElement | null };
  ordered: readonly T[];
  height: number;
  keys: boolean;
  rowKey: (row: T) => string;
  current: string | null;
  onOpen: ((row: T) => void) | undefined;
}) {
  const [at, setAt] = useState(-1);
  const wanted = useRef(false);
  const move = useCallback(
    (to: number): boolean => {
      const element = box.current;
      const row = ordered[to];
      if (element === null || row === undefined) return false;
      const scroll = reveal(to, element.scrollTop, element.clientHeight, height, HEADER);
      if (scroll !== null) element.scrollTop = scroll;
      wanted.current = true;
      setAt(to);
      onOpen?.(row);
      return true;
    },
    [box, ordered, height, onOpen],
  );
  useEffect(() => {
    if (!wanted.current) return;
    const link = box.current?.querySelector<HTMLElement>(`tr[data-row="${at}"] :is(a, button)`);
    if (!link) return;
    wanted.current = false;
    link.focus({ preventScroll: true });
  });
  const start = (): number => {
    const marked = current === null ? -1 : ordered.findIndex((row) => rowKey(row) === current);
    return marked < 0 ? at : marked;
  };
  const off = (): false => false;
  useKeys(
    keys
      ? {
          j: () => move(start() + 1),
          k: () => move(Math.max(0, start() - 1)),
        }
      : { j: off },
  );
  const click = (event: MouseEvent, row: number): void => {
    if ((event.target as Element).closest("a, button, input, label")) return;
    setAt(row);
    const found = ordered[row];
    if (found !== undefined) onOpen?.(found);
  };
  return { at, click };
}

/** A button that saves the rows as CSV, with the texts of their columns. */
export function Export<T>({ name, rows, columns, allowed }: { name: string; rows: readonly T[]; columns: readonly Column<T>[]; allowed: boolean }) {
  if (!allowed) return null;
  const run = (): void => {
    const found = columns.filter((column) => column.text !== undefined);
    save(`${name}.csv`, "text/csv", csv([found.map((column) => column.title), ...rows.map((row) => found.map((column) => column.text?.(row) ?? ""))]));
  };
  return (
    <Action icon="download" onClick={run} disabled={rows.length === 0} title="Save these rows as CSV">
      CSV
    </Action>
  );
}
