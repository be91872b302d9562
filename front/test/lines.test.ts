import assert from "node:assert/strict";
import { test } from "node:test";
import { Splitter } from "../src/lib/lines";

test("lines are whole however the chunks fall", () => {
  const text = '{"a":1}\n\n{"b":"x y"}\n{"c":[1,2]}\n';
  for (let size = 1; size <= text.length; size += 1) {
    const splitter = new Splitter();
    const found: string[] = [];
    for (let at = 0; at < text.length; at += size) found.push(...splitter.push(text.slice(at, at + size)));
    assert.deepEqual(found, ['{"a":1}', '{"b":"x y"}', '{"c":[1,2]}'], `chunks of ${size}`);
    assert.equal(splitter.rest, "");
  }
});

test("an unfinished line stays back", () => {
  const splitter = new Splitter();
  assert.deepEqual(splitter.push('{"a":1}\n{"b'), ['{"a":1}']);
  assert.equal(splitter.rest, '{"b');
});
