/** The records that were found, as a file. */

import type { RecordRow } from "../lib/contract";
import { csv, save } from "../lib/csv";
import { Action } from "../ui/basics";

/** JSON of one record on a line; numbers beyond 2^53 are strings, as in the API. */
export function asLines(rows: readonly RecordRow[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

export function asCsv(rows: readonly RecordRow[]): string {
  const head = ["partition", "offset", "timestamp_ms", "key", "value", "headers", "state"];
  return csv([
    head,
    ...rows.map((row) => [
      String(row.partition),
      row.offset,
      row.timestamp_ms,
      row.key?.text ?? "",
      row.value?.text ?? "",
      row.headers.map((header) => `${header.name}=${header.value?.text ?? ""}`).join("; "),
      row.state,
    ]),
  ]);
}

export function SaveRecords({ name, rows, allowed }: { name: string; rows: readonly RecordRow[]; allowed: boolean }) {
  if (!allowed) return null;
  return (
    <>
      <Action icon="download" disabled={rows.length === 0} onClick={() => save(`${name}.jsonl`, "application/x-ndjson", asLines(rows))} title="Save the records found, a JSON object a line">
        JSON
      </Action>
      <Action icon="download" disabled={rows.length === 0} onClick={() => save(`${name}.csv`, "text/csv", asCsv(rows))} title="Save the records found as CSV">
        CSV
      </Action>
    </>
  );
}
