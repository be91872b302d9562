import assert from "node:assert/strict";
import { test } from "node:test";
import { pretty, tokens } from "../src/lib/json";

const text = (source: string): string | null => pretty(source)?.map((token) => token.text).join("") ?? null;

test("numbers keep their digits", () => {
  assert.equal(text('{"id":9223372036854775807,"x":1e400,"y":0.10}'), '{\n  "id": 9223372036854775807,\n  "x": 1e400,\n  "y": 0.10\n}');
});

test("layout is that of JSON.stringify with two blanks", () => {
  for (const value of [{}, [], { a: [] }, [{}, [1, [2]]], { a: { b: [null, true, "x\"\\\n"] } }, "text", 5, null]) {
    assert.equal(text(JSON.stringify(value)), JSON.stringify(value, null, 2));
  }
});

test("keys and strings differ", () => {
  assert.deepEqual(tokens('{"a":"b"}')?.map((token) => token.kind), ["mark", "key", "mark", "string", "mark"]);
  assert.deepEqual(tokens('["a"]')?.map((token) => token.kind), ["mark", "string", "mark"]);
});

test("what is no JSON is left alone", () => {
  for (const source of ["", "{", "[1", "[1}", "hello", '{"a":NaN}', '"open', "<b>"]) assert.equal(text(source), null, source);
});

test("a long document is left as text", () => {
  assert.equal(pretty(JSON.stringify(new Array(1000).fill(1)), 100), null);
});

test("ten thousand levels do not overflow the stack", () => {
  const deep = "[".repeat(5000) + "]".repeat(5000);
  assert.notEqual(pretty(deep), null);
});
