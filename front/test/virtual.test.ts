import assert from "node:assert/strict";
import { test } from "node:test";
import { reveal, span } from "../src/lib/virtual";

test("every row of the viewport is drawn, and the paddings make up the rest", () => {
  for (const count of [0, 1, 7, 100, 10_000]) {
    for (const scrolled of [-50, 0, 13, 27, 28, 1000, 279_000, 10_000_000]) {
      const { first, end, before, after } = span(scrolled, 600, 28, count);
      assert.ok(first >= 0 && end <= count && first <= end, `${first} ${end}`);
      assert.equal(before + (end - first) * 28 + after, count * 28);
      const top = Math.max(0, Math.min(scrolled, Math.max(0, count * 28 - 600)));
      assert.ok(before <= top);
      assert.ok(count * 28 - after >= Math.min(count * 28, top + 600));
    }
  }
});

test("the document holds few rows however long the table is", () => {
  const { first, end } = span(140_000, 900, 28, 10_000);
  assert.ok(end - first <= 60, String(end - first));
});

test("the first row is even, so stripes stay", () => {
  for (let scrolled = 0; scrolled < 5000; scrolled += 17) assert.equal(span(scrolled, 500, 28, 1000).first % 2, 0);
});

test("a row out of sight is scrolled to the nearest edge", () => {
  assert.equal(reveal(0, 100, 500, 28, 0), 0);
  assert.equal(reveal(10, 100, 500, 28, 0), null);
  assert.equal(reveal(30, 100, 500, 28, 0), 31 * 28 - 500);
  assert.equal(reveal(20, 100, 500, 28, 30), 21 * 28 - 500 + 30);
});
