import assert from "node:assert/strict";
import { test } from "node:test";
import type { Payload, RecordRow } from "../src/lib/contract";
import { draftOf, EMPTY, fault, toBody, type Draft } from "../src/lib/produce";

const payload = (decoder: string, text: string, more: Partial<Payload> = {}): Payload => ({ size: text.length, decoder, text, cut: false, masked: false, schema: null, refused: [], ...more });

const record = (more: Partial<RecordRow>): RecordRow => ({
  partition: 1,
  offset: "5",
  timestamp_ms: "1",
  timestamp_type: "create",
  key: null,
  value: null,
  headers: [],
  size: 1,
  batch: { compression: "none", producer_id: "-1", producer_epoch: -1, sequence: -1, transactional: false, leader_epoch: 0 },
  state: "plain",
  control: null,
  ...more,
});

test("JSON is sent as it was written", () => {
  const data = '{ "id": 9223372036854775807, "x": 1.10 }';
  assert.deepEqual((toBody({ ...EMPTY, value: { encoding: "json", data } }) as { value: unknown }).value, { encoding: "json", data });
});

test("wrong parts are named and nothing is sent", () => {
  assert.notEqual(fault({ encoding: "json", data: "{" }), null);
  assert.notEqual(fault({ encoding: "json", data: "" }), null);
  assert.notEqual(fault({ encoding: "hex", data: "0g" }), null);
  assert.notEqual(fault({ encoding: "hex", data: "000" }), null);
  assert.notEqual(fault({ encoding: "base64", data: "abc" }), null);
  assert.equal(fault({ encoding: "hex", data: "00 ff" }), null);
  assert.equal(fault({ encoding: "base64", data: "YWJj" }), null);
  assert.equal(toBody(EMPTY), null);
  assert.equal(toBody({ ...EMPTY, value: { encoding: "text", data: "" }, partition: "x" }), null);
});

test("null is no empty text", () => {
  const body = toBody({ ...EMPTY, key: { encoding: "text", data: "" }, value: { encoding: "null", data: "left over" } }) as { key: unknown; value: unknown };
  assert.deepEqual(body.key, { encoding: "text", data: "" });
  assert.equal(body.value, null);
});

test("a record is repeated with its bytes", () => {
  const { draft, lacks } = draftOf(record({ key: payload("text", "k"), value: payload("json", '{"a": 1}'), headers: [{ name: "h", value: payload("hex", "00ff") }] }));
  assert.deepEqual(lacks, []);
  assert.deepEqual(toBody(draft), {
    partition: null,
    key: { encoding: "text", data: "k" },
    value: { encoding: "json", data: '{"a": 1}' },
    headers: [{ name: "h", value: { encoding: "hex", data: "00ff" } }],
    timestamp_ms: null,
  });
});

test("what is shown decoded, cut or masked is not passed off as the record's bytes", () => {
  const { lacks } = draftOf(record({ key: payload("int", "7"), value: payload("text", "a", { cut: true }), headers: [{ name: "h", value: payload("text", "x", { masked: true }) }] }));
  assert.deepEqual(lacks, ["the key", "the value", "header h"]);
});

test("partition and timestamp are optional", () => {
  const draft: Draft = { ...EMPTY, value: { encoding: "text", data: "x" }, partition: "3", timestamp: "1764309600000" };
  const body = toBody(draft) as { partition: unknown; timestamp_ms: unknown };
  assert.equal(body.partition, 3);
  assert.equal(body.timestamp_ms, "1764309600000");
});
