/** What numbers and texts of single pages mean. Pure. */

import type { Assignment, Group, Member, OffsetRow, Quota } from "./contract";
import { bytes, integer } from "./format";

/** What the numbers of a partition mean, where they say more than its lag. */
export function remark(row: OffsetRow): string {
  if (row.error !== null) return row.error;
  const [committed, start, end, stable] = [row.committed, row.start, row.end, row.stable].map(integer);
  if (committed === null || committed === undefined) return "nothing committed";
  if (start !== null && start !== undefined && committed < start) return `${start - committed} records were deleted before they were read`;
  if (end !== null && end !== undefined && committed > end) return "committed is beyond the end: was the topic recreated?";
  if (stable !== null && stable !== undefined && end !== null && end !== undefined && stable < end && committed >= stable) return `waits for an open transaction at ${stable}`;
  return "";
}

/** Settings from lines of `name=value`. Text that is none is named. */
export function settingsOf(text: string): { configs: Record<string, string>; wrong: string | null } {
  const configs: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    if (at <= 0) return { configs, wrong: line.trim() };
    configs[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return { configs, wrong: null };
}

export const PLACES = [
  ["earliest", "the earliest record"],
  ["latest", "the end"],
  ["time", "a time"],
  ["offset", "an offset"],
  ["shift", "some records forth or back"],
] as const;

export type Place = (typeof PLACES)[number][0];

const OF_SHARE_GROUPS: readonly Place[] = ["earliest", "latest", "time"];

/** Where offsets of a group of this type can be moved: the API refuses numbers for share groups. */
export function placesOf(type: string): readonly (typeof PLACES)[number][] {
  return type === "share" ? PLACES.filter(([id]) => OF_SHARE_GROUPS.includes(id)) : PLACES;
}

/** Whether the page offers to remove offsets of a topic: from groups of every type. */
export function mayForget(group: Pick<Group, "type" | "may" | "offsets">): boolean {
  return group.may.change && group.offsets.length > 0;
}

/** `orders: 0, 1; mail: 3`. */
export function assignmentText(assignment: Assignment): string {
  return assignment.map((each) => `${each.topic}: ${each.partitions.join(", ")}`).join("; ");
}

const TASKS = [
  ["active", "Active tasks"],
  ["standby", "Standby tasks"],
  ["warmup", "Warm-up tasks"],
] as const;

/** What a member has of each kind of task, and what it will have. Other groups: its partitions. */
export function tasksOf(member: Member): readonly { readonly title: string; readonly now: Assignment; readonly then: Assignment | null }[] {
  const own = member.streams;
  if (own === null) return [{ title: "Assigned", now: member.assignment, then: member.target }];
  const found = { active: [member.assignment, member.target], standby: [own.standby, own.target_standby], warmup: [own.warmup, own.target_warmup] } as const;
  return TASKS.map(([id, title]) => ({ title, now: found[id][0], then: found[id][1] }));
}

/** What a member has not yet, or still has to give up: its whole target as text, empty when it has just that. */
export function targetText(member: Member): string {
  const kinds = tasksOf(member);
  if (kinds.every(({ now, then }) => then === null || assignmentText(now) === assignmentText(then))) return "";
  const parts = kinds.filter(({ then }) => then !== null && then.length > 0).map(({ title, then }) => (member.streams === null ? "" : `${title.toLowerCase()} `) + assignmentText(then ?? []));
  return parts.length === 0 ? "nothing" : parts.join("; ");
}

/** Epoch of the topology that a member runs, and what is wrong with it. */
export function topologyText(member: Member, group: Pick<Group, "streams">): string {
  if (member.streams === null) return "";
  const epoch = member.streams.topology_epoch;
  return group.streams === null || group.streams.topology_epoch < 0 || epoch === group.streams.topology_epoch ? String(epoch) : `${epoch}, the group's is ${group.streams.topology_epoch}`;
}

/** The value that goes with a place, null where it needs none, undefined while it is incomplete. */
export function placeValue(place: Place, text: string): string | null | undefined {
  if (place === "earliest" || place === "latest") return null;
  const value = text.trim();
  if (place === "shift") return /^[+-]?\d+$/.test(value) ? value.replace(/^\+/, "") : undefined;
  return /^\d+$/.test(value) ? value : undefined;
}

/** `user ann, any client`. */
export function entityText(row: Quota): string {
  return Object.entries(row.entity)
    .map(([kind, name]) => (name === null ? `any ${kind.replaceAll("-", " ")}` : `${kind.replaceAll("-", " ")} ${name}`))
    .join(", ");
}

/** A limit in its unit, by its key. */
export function limitText(key: string, value: number): string {
  if (key.endsWith("byte_rate")) return `${key.replace("_byte_rate", "")}: ${bytes(value)}/s`;
  if (key === "request_percentage") return `request time: ${value} %`;
  return `${key.replaceAll("_", " ")}: ${value}/s`;
}
