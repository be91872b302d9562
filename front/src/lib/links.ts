/** The pages' addresses below the base, in one place: patterns for the router, and a function for each link. */

import { path } from "./router";

export const PATTERNS = [
  ["clusters", ""],
  ["record", "c/:cluster/topics/:topic/records/:partition/:offset"],
  ["topic", "c/:cluster/topics/:topic/:tab?"],
  ["topics", "c/:cluster/topics"],
  ["group", "c/:cluster/groups/:group/:tab?"],
  ["groups", "c/:cluster/groups"],
  ["broker", "c/:cluster/brokers/:broker"],
  ["brokers", "c/:cluster/brokers"],
  ["quorum", "c/:cluster/quorum"],
  ["moves", "c/:cluster/moves"],
  ["transaction", "c/:cluster/transactions/:transaction"],
  ["transactions", "c/:cluster/transactions"],
  ["acls", "c/:cluster/acls"],
  ["users", "c/:cluster/users"],
  ["search", "c/:cluster/search"],
  ["health", "c/:cluster"],
] as const satisfies readonly (readonly [string, string])[];

export type PageName = (typeof PATTERNS)[number][0];

const query = (parameters: Readonly<Record<string, string | undefined>>): string => {
  const found = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "");
  return found.length === 0 ? "" : `?${new URLSearchParams(found).toString()}`;
};

export type Section = "topics" | "groups" | "brokers" | "quorum" | "moves" | "transactions" | "acls" | "users" | "search";

export const toCluster = (cluster: string): string => path("c", cluster);
export const toSection = (cluster: string, section: Section, parameters: Readonly<Record<string, string | undefined>> = {}): string =>
  path("c", cluster, section) + query(parameters);
export const toTopic = (cluster: string, topic: string, tab = "", parameters: Readonly<Record<string, string | undefined>> = {}): string =>
  path("c", cluster, "topics", topic, ...(tab === "" ? [] : [tab])) + query(parameters);
export const toRecord = (cluster: string, topic: string, partition: number | string, offset: string, parameters: Readonly<Record<string, string | undefined>> = {}): string =>
  path("c", cluster, "topics", topic, "records", String(partition), offset) + query(parameters);
export const toGroup = (cluster: string, group: string, tab = ""): string => path("c", cluster, "groups", group, ...(tab === "" ? [] : [tab]));
export const toBroker = (cluster: string, broker: number | string): string => path("c", cluster, "brokers", String(broker));
export const toTransaction = (cluster: string, id: string): string => path("c", cluster, "transactions", id);

/** Where a finding or a search hit leads, or null where there is no page for it. */
export function toThing(cluster: string, kind: string, name: { topic?: string | null; group?: string | null; broker?: number | string | null; id?: string | null }): string | null {
  switch (kind) {
    case "topic":
      return name.topic ? toTopic(cluster, name.topic) : toSection(cluster, "topics");
    case "group":
      return name.group === null || name.group === undefined ? toSection(cluster, "groups") : toGroup(cluster, name.group);
    case "broker":
      return name.broker === null || name.broker === undefined ? toSection(cluster, "brokers") : toBroker(cluster, name.broker);
    case "transaction":
      return name.id === null || name.id === undefined ? toSection(cluster, "transactions") : toTransaction(cluster, name.id);
    case "user":
      return toSection(cluster, "users", { q: name.id ?? undefined });
    case "logdirs":
      return toSection(cluster, "brokers");
    case "quorum":
    case "moves":
      return toSection(cluster, kind);
    default:
      return null;
  }
}
