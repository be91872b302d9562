import assert from "node:assert/strict";
import { test } from "node:test";
import { cell, csv } from "../src/lib/csv";

test("cells that look like formulas are quoted, numbers are not", () => {
  for (const text of ["=1+1", "+1", "@SUM(A1)", "-cmd", "\tx"]) assert.ok(cell(text).replace(/^"/, "").startsWith("'"), text);
  assert.equal(cell("-12"), "-12");
  assert.equal(cell("-1.5"), "-1.5");
  assert.equal(cell("a-b"), "a-b");
});

test("commas, quotes and line ends are escaped", () => {
  assert.equal(csv([["a,b", 'say "x"', "1\n2"], ["plain"]]), '"a,b","say ""x""","1\n2"\r\nplain\r\n');
});
