import assert from "node:assert/strict";
import { test } from "node:test";
import { fromField, missing, partitionsOf, toField, toQuery, wanted } from "../src/lib/search";

test("an empty query string asks for the newest fifty", () => {
  const want = wanted("");
  assert.equal(want.mode, "newest");
  assert.equal(want.limit, "50");
  assert.equal(missing(want), null);
  const query = toQuery(want, null);
  assert.equal(query["cursor"], undefined);
  assert.equal(query["filter"], undefined);
  assert.deepEqual(query["partition"], []);
});

test("an unknown mode is the newest", () => {
  assert.equal(wanted("?mode=nonsense").mode, "newest");
});

test("offset and time are needed, and sent, only in their mode", () => {
  assert.notEqual(missing(wanted("?mode=offset")), null);
  assert.notEqual(missing(wanted("?mode=offset&offset=1e3")), null);
  assert.equal(missing(wanted("?mode=offset&offset=9223372036854775807")), null);
  assert.equal(toQuery(wanted("?mode=offset&offset=9223372036854775807&time=1"), "c")["offset"], "9223372036854775807");
  assert.equal(toQuery(wanted("?mode=offset&offset=7&time=1"), null)["time"], undefined);
  assert.equal(toQuery(wanted("?mode=newest&offset=7"), null)["offset"], undefined);
  assert.notEqual(missing(wanted("?mode=time&time=x")), null);
});

test("a tail has no limit", () => {
  assert.equal(toQuery(wanted("?mode=tail"), null)["limit"], undefined);
});

test("partitions are numbers and ranges", () => {
  assert.deepEqual(partitionsOf("0, 2 5-7,2"), ["0", "2", "5", "6", "7"]);
  assert.deepEqual(partitionsOf("x,-1,3.5"), []);
  assert.deepEqual(partitionsOf("7-5"), []);
  assert.equal(partitionsOf("0-999999").length, 1001);
});

test("a time survives its field", () => {
  const ms = "1764309425000";
  assert.equal(fromField(toField(ms)), ms);
  assert.equal(fromField(""), "");
  assert.equal(toField(""), "");
});
