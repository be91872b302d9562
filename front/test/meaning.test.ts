import assert from "node:assert/strict";
import { test } from "node:test";
import type { Group, Member, OffsetRow } from "../src/lib/contract";
import { entityText, limitText, mayForget, placesOf, placeValue, remark, settingsOf, targetText, tasksOf, topologyText } from "../src/lib/meaning";
import { inOrder } from "../src/lib/order";

const row = (more: Partial<OffsetRow>): OffsetRow => ({ topic: "t", partition: 0, committed: "10", start: "0", end: "20", stable: "20", lag: "10", member: null, error: null, ...more });

test("a partition's note names what its lag does not say", () => {
  assert.equal(remark(row({})), "");
  assert.equal(remark(row({ committed: null })), "nothing committed");
  assert.equal(remark(row({ start: "15" })), "5 records were deleted before they were read");
  assert.match(remark(row({ committed: "21" })), /beyond the end/);
  assert.equal(remark(row({ committed: "12", stable: "12" })), "waits for an open transaction at 12");
  assert.equal(remark(row({ committed: "11", stable: "12" })), "");
  assert.equal(remark(row({ error: "LEADER_NOT_AVAILABLE" })), "LEADER_NOT_AVAILABLE");
});

test("settings are lines of name=value, and a value may hold =", () => {
  assert.deepEqual(settingsOf("a=1\n\n b = x=y \nc="), { configs: { a: "1", b: "x=y", c: "" }, wrong: null });
  assert.equal(settingsOf("a=1\nnonsense").wrong, "nonsense");
  assert.equal(settingsOf("=1").wrong, "=1");
});

test("places without a value send null, incomplete ones nothing", () => {
  assert.equal(placeValue("earliest", "7"), null);
  assert.equal(placeValue("offset", " 9223372036854775807 "), "9223372036854775807");
  assert.equal(placeValue("offset", "-1"), undefined);
  assert.equal(placeValue("shift", "-100"), "-100");
  assert.equal(placeValue("shift", "+5"), "5");
  assert.equal(placeValue("time", ""), undefined);
});

test("offsets of share groups are moved to no number", () => {
  const ids = (type: string): string[] => placesOf(type).map(([id]) => id);
  assert.deepEqual(ids("share"), ["earliest", "latest", "time"]);
  for (const type of ["classic", "consumer", "streams"]) assert.deepEqual(ids(type), ["earliest", "latest", "time", "offset", "shift"]);
});

test("offsets are removed from groups of every type, by those who may change them", () => {
  const group = (type: string, change: boolean, offsets: Group["offsets"]): boolean => mayForget({ type, may: { view: true, payload: true, change }, offsets });
  for (const type of ["classic", "consumer", "share", "streams"]) {
    assert.equal(group(type, true, [row({})]), true);
    assert.equal(group(type, false, [row({})]), false);
    assert.equal(group(type, true, []), false);
  }
});

test("quotas are in words and units", () => {
  assert.equal(entityText({ entity: { user: "ann", "client-id": null }, limits: {} }), "user ann, any client id");
  assert.equal(limitText("consumer_byte_rate", 1024).replace("\u202f", " "), "consumer: 1.00 KiB/s");
  assert.equal(limitText("request_percentage", 50), "request time: 50 %");
  assert.equal(limitText("controller_mutation_rate", 5), "controller mutation rate: 5/s");
});

test("rows are ordered as the address says, equal ones stay", () => {
  const rows = [{ name: "b", lag: 1 }, { name: "a", lag: 1 }, { name: "c", lag: 0 }];
  const columns = [{ key: "lag", compare: (left: (typeof rows)[0], right: (typeof rows)[0]) => left.lag - right.lag }, { key: "name" }];
  const names = (order: string): string => inOrder(rows, columns, order).map((each) => each.name).join("");
  assert.equal(names(""), "bac");
  assert.equal(names("lag"), "cba");
  assert.equal(names("-lag"), "bac");
  assert.equal(names("name"), "bac");
  assert.equal(names("nonsense"), "bac");
});

const tasks = (...partitions: number[]) => (partitions.length === 0 ? [] : [{ topic: "0", partitions }]);
const thread = (more: Partial<NonNullable<Member["streams"]>>): Member => ({
  id: "m", instance_id: null, client_id: "c", host: "h", epoch: 1, assignment: tasks(0), target: tasks(0),
  streams: { process_id: "p", topology_epoch: 1, classic: false, standby: tasks(1), warmup: tasks(), target_standby: tasks(1), target_warmup: tasks(), ...more },
});

test("members of streams groups have three kinds of tasks, others partitions", () => {
  assert.deepEqual(tasksOf(thread({ warmup: tasks(2) })).map(({ title, now }) => [title, now.flatMap((each) => each.partitions)]), [["Active tasks", [0]], ["Standby tasks", [1]], ["Warm-up tasks", [2]]]);
  assert.deepEqual(tasksOf({ ...thread({}), streams: null }).map(({ title }) => title), ["Assigned"]);
});

test("a target has a text only where it differs, in tasks of every kind", () => {
  assert.equal(targetText(thread({})), "");
  assert.equal(targetText(thread({ target_warmup: tasks(2) })), "active tasks 0: 0; standby tasks 0: 1; warm-up tasks 0: 2");
  assert.equal(targetText({ ...thread({}), streams: null, target: [] }), "nothing");
  assert.equal(targetText({ ...thread({}), streams: null, target: null }), "");
});

test("a member with another topology than its group shows both epochs", () => {
  const group = (epoch: number) => ({ streams: { topology_epoch: epoch, subtopologies: [] } });
  assert.equal(topologyText(thread({}), group(1)), "1");
  assert.equal(topologyText(thread({}), group(2)), "1, the group's is 2");
  assert.equal(topologyText(thread({}), group(-1)), "1");
});
