import assert from "node:assert/strict";
import { test } from "node:test";
import { advice, inCluster, inTopic, Problem } from "../src/lib/api";

test("names are one segment each, parameters are encoded and repeated", () => {
  assert.equal(inCluster("main", ["group"], { id: "a/b c&d" }), "clusters/main/group?id=a%2Fb+c%26d");
  assert.equal(inCluster("main", ["topics", "facts"], { name: ["a", "b"], none: undefined }), "clusters/main/topics/facts?name=a&name=b");
  assert.equal(inTopic("main", "orders.v1", ["records", 3, "9"], { full: "1" }), "clusters/main/topics/orders.v1/records/3/9?full=1");
});

test("a topic with the name of a route keeps its own page", () => {
  assert.equal(inTopic("main", "facts", ["config"]), "clusters/main/topics/%66acts/config");
  assert.equal(new URL(`http://h/${inTopic("main", "facts", [])}`).pathname, "/clusters/main/topics/%66acts");
});

test("each refusal has its advice", () => {
  for (const status of [0, 401, 403, 404, 409, 413, 421, 429, 500, 502, 503, 504]) assert.notEqual(advice(new Problem(status, "t", "d")), "", String(status));
  assert.match(advice(new Problem(429, "t", "d", null, null, 12)), /12 s/);
});
