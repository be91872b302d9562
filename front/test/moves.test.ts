import assert from "node:assert/strict";
import { test } from "node:test";
import type { MovePlan } from "../src/lib/contract";
import { brokersOf, countOf, rateOf, shareOf, stateOf } from "../src/lib/moves";

test("rates are read with units, and an empty text is no limit", () => {
  assert.equal(rateOf("50M"), String(50 << 20));
  assert.equal(rateOf(" 1.5 KiB/s "), "1536");
  assert.equal(rateOf("1000"), "1000");
  assert.equal(rateOf(""), null);
  for (const text of ["0", "fast", "-1", "5 miles", "0.1"]) assert.equal(rateOf(text), undefined, text);
});

test("brokers are a list of numbers, each once", () => {
  assert.deepEqual(brokersOf("3, 1,3"), [1, 3]);
  assert.equal(brokersOf(" "), null);
  for (const text of ["1,", "a", "1;2", "1234567890123"]) assert.equal(brokersOf(text), undefined, text);
});

test("counts have bounds", () => {
  assert.equal(countOf("3", 1, 5), 3);
  for (const text of ["", "0", "6", "x", "1.5"]) assert.equal(countOf(text, 1, 5), undefined, text);
});

test("the share that is copied is unknown where brokers do not say", () => {
  assert.equal(shareOf({ bytes: "200", copied: "50" }), 0.25);
  assert.equal(shareOf({ bytes: "200", copied: "300" }), 1);
  assert.equal(shareOf({ bytes: "0", copied: "0" }), null);
  assert.equal(shareOf({ bytes: null, copied: "1" }), null);
});

const PLAN: MovePlan = { title: "Drain broker 3", total: 12, done: 4, moving: 2, waiting: 6, failed: [], failures: 0, stopping: false, throttle: null, began_ms: "1", ended_ms: null, problem: null };

test("a plan says how far it is", () => {
  assert.equal(stateOf(PLAN), "4 of 12 done, 2 under way, 6 wait");
  assert.equal(stateOf({ ...PLAN, stopping: true, waiting: 0 }), "4 of 12 done, 2 under way, no more begin");
  assert.equal(stateOf({ ...PLAN, done: 11, failures: 1, ended_ms: "2" }), "ended: 11 of 12 done, 1 failed");
  assert.equal(stateOf({ ...PLAN, stopping: true, ended_ms: "2" }), "stopped: 4 of 12 done");
});
