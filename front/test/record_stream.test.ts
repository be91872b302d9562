import assert from "node:assert/strict";
import { test } from "node:test";
import type { Line, RecordRow } from "../src/lib/contract";
import { after, NOTHING, TAIL_ROWS } from "../src/lib/record_stream";

const record = (offset: number): Line => ({ kind: "record", partition: 0, offset: String(offset) }) as unknown as Line;
const offsets = (rows: readonly RecordRow[]): string => rows.map((row) => row.offset).join(" ");

test("a search appends in the order of the stream", () => {
  const once = after(NOTHING, [record(9), record(8)], false);
  const twice = after(once, [record(7), { kind: "end", reason: "limit", cursor: "c", scanned: "3", bytes: "30", hits: 3, seconds: 0.1 }], false);
  assert.equal(offsets(twice.rows), "9 8 7");
  assert.equal(twice.end?.cursor, "c");
});

test("a tail puts the newest on top and forgets the oldest", () => {
  let found = after(NOTHING, [record(1), record(2)], true);
  found = after(found, [record(3)], true);
  assert.equal(offsets(found.rows), "3 2 1");
  found = after(found, Array.from({ length: TAIL_ROWS }, (_, index) => record(index + 4)), true);
  assert.equal(found.rows.length, TAIL_ROWS);
  assert.equal(found.rows[0]?.offset, String(TAIL_ROWS + 3));
});

test("what was left out adds up, beyond 2^53 too", () => {
  const found = after(after(NOTHING, [{ kind: "dropped", count: "9007199254740993" }], true), [{ kind: "dropped", count: "7" }], true);
  assert.equal(found.dropped, 9007199254741000n);
});

test("a partition's newest problem replaces the one before", () => {
  const found = after(NOTHING, [{ kind: "problem", partition: 2, error: "a" }, { kind: "problem", partition: 2, error: "b" }], false);
  assert.deepEqual(found.problems.map((each) => each.error), ["b"]);
});

test("lines without records leave the rows as they are", () => {
  const found = after(NOTHING, [record(1)], false);
  assert.equal(after(found, [{ kind: "beat" }], false).rows, found.rows);
});
