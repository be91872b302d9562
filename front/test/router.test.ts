import assert from "node:assert/strict";
import { test } from "node:test";
import { below, match, path, segment, unsegment, withQuery } from "../src/lib/router";
import { PATTERNS as PAGES, toCluster, toGroup, toRecord, toSection, toThing, toTopic } from "../src/lib/links";

const PATTERNS = [
  ["overview", ""],
  ["topics", "topics"],
  ["record", "topics/:topic/records/:partition/:offset"],
  ["topic", "topics/:topic/:tab?"],
  ["group", "groups/:group"],
] as const;

test("each name survives its path segment", () => {
  for (const name of ["", ".", "..", "~", "~..", "a/b", "a b?c#d%25", "ünïcödé", "orders.v1", "<script>", "a\\b", "\u0000"]) {
    const text = segment(name);
    assert.equal(unsegment(text), name);
    assert.ok(!/[/?#]/.test(text), text);
    // What browsers make of the path must still be the same path.
    assert.equal(new URL(`http://h/base/groups/${text}`).pathname, `/base/groups/${text}`);
  }
});

test("a segment that is no percent-encoding stands for itself", () => {
  assert.equal(unsegment("100%"), "100%");
});

test("paths match the first pattern that takes them", () => {
  assert.deepEqual(match(PATTERNS, ""), { page: "overview", params: {} });
  assert.deepEqual(match(PATTERNS, "topics/"), { page: "topics", params: {} });
  assert.deepEqual(match(PATTERNS, "topics/a.b"), { page: "topic", params: { topic: "a.b", tab: "" } });
  assert.deepEqual(match(PATTERNS, "topics/a.b/config"), { page: "topic", params: { topic: "a.b", tab: "config" } });
  assert.deepEqual(match(PATTERNS, "topics/t/records/3/18446744073709551615"), {
    page: "record",
    params: { topic: "t", partition: "3", offset: "18446744073709551615" },
  });
  assert.deepEqual(match(PATTERNS, path("groups", "a/b")), { page: "group", params: { group: "a/b" } });
  assert.equal(match(PATTERNS, "nowhere"), null);
  assert.equal(match(PATTERNS, "groups/a/b"), null);
});

test("the base path is cut off, and other paths are refused", () => {
  assert.equal(below("/", "/topics"), "topics");
  assert.equal(below("/ops/console/", "/ops/console/topics/a"), "topics/a");
  assert.equal(below("/ops/console/", "/ops/console"), "");
  assert.equal(below("/ops/console/", "/ops/consoles"), null);
});

test("query strings change key by key", () => {
  assert.equal(withQuery("?a=1&b=2", { b: "x y" }), "?a=1&b=x+y");
  assert.equal(withQuery("?a=1", { a: "" }), "");
  assert.equal(withQuery("", { q: "a&b=c" }), "?q=a%26b%3Dc");
  assert.equal(withQuery("?a=1", { c: undefined }), "?a=1");
});

test("every page's pattern takes its own links", () => {
  const at = (link: string) => match(PAGES, link.replace(/\?.*/, ""));
  assert.equal(at("")?.page, "clusters");
  assert.equal(at(toCluster("main"))?.page, "health");
  assert.equal(at(toTopic("main", "topics", "records"))?.page, "topic");
  assert.deepEqual(at(toRecord("main", "a.b", 3, "9"))?.params, { cluster: "main", topic: "a.b", partition: "3", offset: "9" });
  for (const group of ["", "..", "a/b", "groups"]) assert.deepEqual(at(toGroup("main", group, "members"))?.params, { cluster: "main", group, tab: "members" });
  assert.equal(at(toSection("main", "topics", { q: "a b" }))?.page, "topics");
  assert.equal(toSection("main", "topics", { q: "a b", none: undefined }), "c/main/topics?q=a+b");
  assert.equal(toThing("main", "user", { id: "ann" }), "c/main/users?q=ann");
  assert.equal(toThing("main", "elsewhere", {}), null);
});
