/** What the produce form sends. Pure. */

import type { Payload, RecordRow } from "./contract";
import { tokens } from "./json";

export const ENCODINGS = [
  ["text", "Text"],
  ["json", "JSON"],
  ["hex", "Hex"],
  ["base64", "Base64"],
  ["null", "null"],
] as const;

export type Encoding = (typeof ENCODINGS)[number][0];

export interface Part {
  readonly encoding: Encoding;
  readonly data: string;
}

export interface Draft {
  readonly key: Part;
  readonly value: Part;
  readonly headers: readonly (Part & { readonly name: string })[];
  /** Empty: as the key says, or any. */
  readonly partition: string;
  /** Epoch milliseconds; empty: the time of sending. */
  readonly timestamp: string;
}

export const EMPTY: Draft = { key: { encoding: "null", data: "" }, value: { encoding: "json", data: "" }, headers: [], partition: "", timestamp: "" };

/** What is wrong with a part, or null. The server validates it too. */
export function fault(part: Part): string | null {
  switch (part.encoding) {
    case "hex":
      return /^([0-9a-fA-F]{2})*$/.test(part.data.replace(/\s+/g, "")) ? null : "hex is pairs of 0-9 and a-f";
    case "base64":
      return /^[A-Za-z0-9+/]*={0,2}$/.test(part.data.replace(/\s+/g, "")) && part.data.replace(/\s+/g, "").length % 4 === 0 ? null : "this is no base64";
    case "json":
      return part.data.trim() === "" ? "enter JSON, or choose text" : part.data.length > 100_000 || tokens(part.data) !== null ? null : "this is no JSON";
    default:
      return null;
  }
}

const bytesOf = (part: Part): { encoding: string; data: string } | null => {
  if (part.encoding === "null") return null;
  const packed = part.encoding === "hex" || part.encoding === "base64";
  return { encoding: part.encoding, data: packed ? part.data.replace(/\s+/g, "") : part.data };
};

/** The request, or null while something is wrong. */
export function toBody(draft: Draft): object | null {
  const parts = [draft.key, draft.value, ...draft.headers];
  if (parts.some((part) => fault(part) !== null)) return null;
  if (draft.partition !== "" && !/^\d+$/.test(draft.partition)) return null;
  if (draft.timestamp !== "" && !/^-?\d+$/.test(draft.timestamp)) return null;
  return {
    partition: draft.partition === "" ? null : Number(draft.partition),
    key: bytesOf(draft.key),
    value: bytesOf(draft.value),
    headers: draft.headers.map((header) => ({ name: header.name, value: bytesOf(header) })),
    timestamp_ms: draft.timestamp === "" ? null : draft.timestamp,
  };
}

/**
 * A payload as it can be sent again, or null where its text does not hold all its bytes: Avro, Protobuf, MessagePack and integers
 * are shown decoded, and masked or cut text is not what was written.
 */
export function partOf(payload: Payload | null): Part | null {
  if (payload === null) return { encoding: "null", data: "" };
  if (payload.cut || payload.masked) return null;
  const encoding = payload.decoder;
  return encoding === "text" || encoding === "json" || encoding === "hex" || encoding === "base64" ? { encoding, data: payload.text } : null;
}

/** A draft that repeats a record, and what could not be taken over. */
export function draftOf(record: RecordRow): { draft: Draft; lacks: string[] } {
  const lacks: string[] = [];
  const take = (what: string, payload: Payload | null): Part => {
    const part = partOf(payload);
    if (part === null) lacks.push(what);
    return part ?? { encoding: "text", data: "" };
  };
  const draft: Draft = {
    key: take("the key", record.key),
    value: take("the value", record.value),
    headers: record.headers.map((header) => ({ name: header.name, ...take(`header ${header.name}`, header.value) })),
    partition: "",
    timestamp: "",
  };
  return { draft, lacks };
}
