/** What the messages page asks for, out of its query string. Pure. */

import type { Session } from "./contract";

export const MODES = [
  ["newest", "Newest first"],
  ["oldest", "Oldest first"],
  ["offset", "From an offset"],
  ["time", "From a time"],
  ["tail", "Live tail"],
] as const;

export type Mode = (typeof MODES)[number][0];

export interface Wanted {
  readonly mode: Mode;
  readonly offset: string;
  readonly time: string;
  readonly partitions: readonly string[];
  readonly limit: string;
  readonly filter: string;
  readonly key: string;
  readonly value: string;
  readonly aborted: boolean;
  readonly control: boolean;
}

/** The keys of the query string that make up a search; a saved search keeps these. */
export const KEYS = ["mode", "offset", "time", "partition", "limit", "filter", "key", "value", "aborted", "control"] as const;

export function wanted(search: string): Wanted {
  const query = new URLSearchParams(search);
  const mode = query.get("mode") ?? "newest";
  return {
    mode: MODES.some(([name]) => name === mode) ? (mode as Mode) : "newest",
    offset: query.get("offset") ?? "",
    time: query.get("time") ?? "",
    partitions: partitionsOf(query.get("partition") ?? ""),
    limit: query.get("limit") ?? "50",
    filter: query.get("filter") ?? "",
    key: query.get("key") ?? "auto",
    value: query.get("value") ?? "auto",
    aborted: query.get("aborted") === "1",
    control: query.get("control") === "1",
  };
}

/** Partitions of a text like `0, 2, 5-7`; what is no number is left out. */
export function partitionsOf(text: string): string[] {
  const found: string[] = [];
  for (const part of text.split(/[\s,]+/)) {
    const [, first, last] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part) ?? [];
    if (first === undefined) continue;
    const end = Math.min(Number(last ?? first), Number(first) + 1000);
    for (let each = Number(first); each <= end; each += 1) if (!found.includes(String(each))) found.push(String(each));
  }
  return found;
}

/** What is missing before the search can run, or null. */
export function missing(want: Wanted): string | null {
  if (want.mode === "offset" && !/^\d{1,19}$/.test(want.offset)) return "Enter the offset to begin at.";
  if (want.mode === "time" && !/^-?\d+$/.test(want.time)) return "Enter the time to begin at.";
  return null;
}

/** The query of the API. */
export function toQuery(want: Wanted, cursor: string | null): Record<string, string | readonly string[] | undefined> {
  return {
    mode: want.mode,
    offset: want.mode === "offset" ? want.offset : undefined,
    time: want.mode === "time" ? want.time : undefined,
    partition: want.partitions,
    limit: want.mode === "tail" ? undefined : want.limit,
    cursor: cursor ?? undefined,
    filter: want.filter === "" ? undefined : want.filter,
    key: want.key,
    value: want.value,
    aborted: want.aborted ? "1" : undefined,
    control: want.control ? "1" : undefined,
  };
}

/** The decoders to choose from; those whose library is missing on the server say so. */
export function decoders(features: Session["features"]): readonly (readonly [string, string])[] {
  const optional = (name: string, title: string): readonly [string, string] => [name, features[name] === false ? `${title} (not installed)` : title];
  return [
    ["auto", "Best that fits"],
    ["json", "JSON"],
    ["text", "Text"],
    optional("avro", "Avro"),
    optional("protobuf", "Protobuf"),
    optional("jsonschema", "JSON with a schema"),
    optional("msgpack", "MessagePack"),
    ["int", "Integer"],
    ["hex", "Hex"],
    ["base64", "Base64"],
    ["none", "Do not decode"],
  ];
}

/** A time in a field of type datetime-local: local time, to the second. */
export function toField(ms: string): string {
  const at = new Date(Number(ms));
  if (ms === "" || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function fromField(text: string): string {
  const at = new Date(text).getTime();
  return Number.isNaN(at) ? "" : String(at);
}
