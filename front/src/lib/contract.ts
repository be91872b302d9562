/** The shapes of the console's JSON API, version 1. Integers that may exceed 2^53 are strings of decimal digits. */

export interface Answer<T> {
  readonly data: T;
  readonly as_of_ms: string;
  readonly partial: readonly { readonly what: string; readonly error: string }[];
}

export interface Session {
  readonly user: string | null;
  readonly login: boolean;
  /** Whether anyone logs in by password. */
  readonly passwords: boolean;
  /** The provider that logs people in. */
  readonly oidc: { readonly title: string } | null;
  readonly logged_in: boolean;
  readonly csrf: string;
  readonly read_only: boolean;
  readonly version: string;
  readonly base_path: string;
  readonly rights: readonly Right[];
  readonly clusters: readonly { readonly id: string; readonly bootstrap: string }[];
  readonly limits: {
    readonly page: number;
    readonly cut_bytes: number;
    readonly full_bytes: number;
    readonly tail_rows_per_second: number;
    readonly produce_bytes: number;
    readonly search_seconds: number;
  };
  readonly features: Readonly<Record<string, boolean>>;
}

/** `logout_url`: where the session ends at the provider, too. */
export interface LoggedOut extends Session {
  readonly logout_url: string | null;
}

export type Right = "view" | "payload" | "change";
export type May = Readonly<Record<Right, boolean>>;

export interface Plan {
  readonly done: boolean;
  readonly dry_run: boolean;
  readonly title: string;
  readonly rows: readonly { readonly what: string; readonly before: string | null; readonly after: string | null; readonly note: string | null }[];
  readonly lost: readonly string[];
  readonly warnings: readonly string[];
  readonly command: string | null;
  readonly confirm: string | null;
  readonly failed: readonly { readonly what: string; readonly error: string }[];
  /** Of a produced record only. */
  readonly partition?: number | null;
  readonly offset?: string | null;
}

export interface ClusterRow {
  readonly id: string;
  readonly bootstrap: string;
  readonly reachable: boolean;
  readonly error: string | null;
  readonly cluster_id: string | null;
  readonly brokers: number | null;
  readonly topics: number | null;
  readonly partitions: number | null;
  readonly unclean: number | null;
  readonly groups: number | null;
}

export interface Health {
  readonly cluster_id: string | null;
  readonly controller: number | null;
  readonly brokers: number | null;
  readonly topics: number | null;
  readonly partitions: number | null;
  readonly groups: number | null;
  readonly findings: readonly HealthFinding[];
  readonly fine: readonly string[];
}

export interface HealthFinding {
  readonly severity: "error" | "warning" | "note";
  readonly kind: string;
  readonly title: string;
  readonly evidence: readonly string[];
  readonly advice: string;
  readonly command: string | null;
  readonly link: { readonly page: string; readonly topic: string | null; readonly group: string | null; readonly broker: number | null; readonly id: string | null } | null;
}

export interface TopicRow {
  readonly name: string;
  readonly partitions: number;
  readonly replication: number;
  readonly internal: boolean;
  readonly unclean: number;
}

export interface Rows<T> {
  readonly rows: readonly T[];
  readonly total: number;
  readonly next: string | null;
}

export interface TopicFacts {
  readonly name: string;
  readonly records: string | null;
  readonly bytes: string | null;
  readonly error: string | null;
}

export interface Partition {
  readonly partition: number;
  /** -1 or null without one. */
  readonly leader: number | null;
  readonly leader_epoch: number | null;
  readonly replicas: readonly number[];
  readonly in_sync: readonly number[];
  readonly offline: readonly number[];
  readonly start: string | null;
  readonly end: string | null;
  readonly stable: string | null;
  readonly bytes: string | null;
}

export interface Topic {
  readonly name: string;
  readonly topic_id: string;
  readonly internal: boolean;
  readonly may: May;
  readonly masked: boolean;
  readonly records: string | null;
  readonly bytes: string | null;
  readonly partitions: readonly Partition[];
  readonly moves: readonly { readonly partition: number; readonly adding: readonly number[]; readonly removing: readonly number[] }[];
}

export interface ConfigRow {
  readonly name: string;
  readonly value: string | null;
  readonly default: string | null;
  readonly source: string;
  readonly differs: boolean;
  readonly read_only: boolean;
  readonly sensitive: boolean;
  readonly type: string;
  readonly documentation: string | null;
}

export interface TopicGroup {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly lag: string | null;
}

export interface ProducerRow {
  readonly partition: number;
  readonly producer_id: string;
  readonly epoch: number;
  readonly last_sequence: number;
  readonly last_ms: string | null;
  readonly transaction_start: string | null;
  readonly coordinator_epoch: number;
}

export interface Payload {
  readonly size: number;
  readonly decoder: string;
  readonly text: string;
  readonly cut: boolean;
  readonly masked: boolean;
  readonly schema: { readonly id: number | null; readonly guid: string | null; readonly type: string; readonly subject: string | null } | null;
  readonly refused: readonly { readonly decoder: string; readonly reason: string }[];
}

export interface RecordRow {
  readonly partition: number;
  readonly offset: string;
  readonly timestamp_ms: string;
  readonly timestamp_type: "create" | "append" | "none";
  readonly key: Payload | null;
  readonly value: Payload | null;
  readonly headers: readonly { readonly name: string; readonly value: Payload | null }[];
  readonly size: number;
  readonly batch: {
    readonly compression: string;
    readonly producer_id: string;
    readonly producer_epoch: number;
    readonly sequence: number;
    readonly transactional: boolean;
    readonly leader_epoch: number;
  };
  readonly state: "plain" | "committed" | "aborted" | "open" | "control";
  readonly control: "commit" | "abort" | null;
}

export interface RecordPage {
  readonly record: RecordRow | null;
  readonly previous: string | null;
  readonly next: string | null;
  readonly start: string | null;
  readonly end: string | null;
  readonly reason: string | null;
}

export type Line =
  | { readonly kind: "begin"; readonly partitions: readonly { partition: number; start: string; end: string; stable: string | null }[]; readonly mode: string }
  | ({ readonly kind: "record" } & RecordRow)
  | { readonly kind: "progress"; readonly scanned: string; readonly bytes: string; readonly hits: number; readonly skipped: string; readonly seconds: number }
  | { readonly kind: "dropped"; readonly count: string }
  | { readonly kind: "problem"; readonly partition: number | null; readonly error: string }
  | { readonly kind: "beat" }
  | {
      readonly kind: "end";
      readonly reason: "limit" | "end" | "budget" | "time" | "failed";
      readonly cursor: string | null;
      readonly scanned: string;
      readonly bytes: string;
      readonly hits: number;
      readonly seconds: number;
    };

export interface GroupRow {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly protocol: string;
}

export interface GroupFacts {
  readonly id: string;
  readonly lag: string | null;
  readonly members: number | null;
  readonly topics: number | null;
  readonly error: string | null;
}

export type Assignment = readonly { readonly topic: string; readonly partitions: readonly number[] }[];

export interface Member {
  readonly id: string;
  readonly instance_id: string | null;
  readonly client_id: string;
  readonly host: string;
  readonly epoch: number | null;
  readonly assignment: Assignment;
  readonly target: Assignment | null;
  /** Of members of streams groups, whose assignment is their active tasks. */
  readonly streams: {
    readonly process_id: string;
    readonly topology_epoch: number;
    readonly classic: boolean;
    readonly standby: Assignment;
    readonly warmup: Assignment;
    readonly target_standby: Assignment;
    readonly target_warmup: Assignment;
  } | null;
}

export interface DeadLetter {
  readonly partition: number;
  readonly offset: string;
  readonly timestamp_ms: string;
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: string };
  readonly delivery_count: number | null;
  readonly reason: string | null;
  readonly key: Payload | null;
  readonly value: Payload | null;
  readonly replayed: boolean | null;
  readonly replay: { readonly at_ms: string; readonly partition: number; readonly offset: string; readonly replays: number } | null;
}

export interface DeadLetters {
  readonly topic: string | null;
  readonly exists: boolean;
  readonly rows: readonly DeadLetter[];
  readonly end: "end" | "limit" | "budget" | "time" | null;
  readonly command: string | null;
}

export interface OffsetRow {
  readonly topic: string;
  readonly partition: number;
  readonly committed: string | null;
  readonly start: string | null;
  readonly end: string | null;
  readonly stable: string | null;
  readonly lag: string | null;
  readonly member: string | null;
  readonly error: string | null;
}

export interface Group {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly assignor: string | null;
  readonly epoch: number | null;
  readonly target_epoch: number | null;
  readonly may: May;
  readonly lag: string | null;
  readonly coordinator: number | null;
  readonly members: readonly Member[];
  readonly offsets: readonly OffsetRow[];
  readonly streams: {
    readonly topology_epoch: number;
    readonly subtopologies: readonly {
      readonly id: string;
      readonly source_topics: readonly string[];
      readonly repartition_topics: readonly string[];
      readonly changelog_topics: readonly string[];
    }[];
  } | null;
  readonly rates: {
    readonly written: number | null;
    readonly read: number | null;
    readonly seconds: number;
    readonly caught_up_seconds: number | null;
    readonly never: boolean;
  } | null;
  readonly history: readonly { readonly at_ms: string; readonly lag: string | null; readonly committed: string | null; readonly end: string | null }[];
}

export interface Finding {
  readonly cause: string;
  readonly title: string;
  readonly evidence: readonly string[];
  readonly advice: string;
  readonly command: string | null;
  readonly certain: boolean;
}

export interface Verdict {
  readonly group: string;
  readonly state: string;
  readonly lag: string | null;
  readonly watched_seconds: number;
  readonly primary: Finding | null;
  readonly contributing: readonly Finding[];
  readonly notes: readonly Finding[];
  readonly fine: readonly string[];
  readonly not_visible: readonly string[];
}

export interface Broker {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  readonly rack: string | null;
  readonly controller: boolean;
  readonly fenced: boolean;
  readonly leaders: number;
  readonly replicas: number;
  readonly out_of_sync: number;
  readonly bytes: string | null;
  readonly dirs: number | null;
  readonly error: string | null;
}

export interface LogDir {
  readonly broker: number;
  readonly path: string;
  readonly total: string | null;
  readonly usable: string | null;
  readonly bytes: string | null;
  readonly replicas: number;
  readonly error: string | null;
  readonly largest: readonly { readonly topic: string; readonly partition: number; readonly bytes: string }[];
}

export interface QuorumMember {
  readonly id: number;
  readonly end: string | null;
  readonly lag: string | null;
  readonly last_fetch_ms: string | null;
  readonly last_caught_up_ms: string | null;
}

export interface Quorum {
  readonly leader: number;
  readonly leader_epoch: number;
  readonly high_watermark: string;
  readonly voters: readonly QuorumMember[];
  readonly observers: readonly QuorumMember[];
}

export interface Move {
  readonly topic: string;
  readonly partition: number;
  readonly replicas: readonly number[];
  readonly adding: readonly number[];
  readonly removing: readonly number[];
  readonly bytes: string | null;
  readonly copied: string | null;
}

/** Moves that the console carries out, or did last. */
export interface MovePlan {
  readonly title: string;
  readonly total: number;
  readonly done: number;
  readonly moving: number;
  readonly waiting: number;
  readonly failed: readonly { readonly what: string; readonly error: string }[];
  readonly failures: number;
  readonly stopping: boolean;
  readonly throttle: string | null;
  readonly began_ms: string;
  readonly ended_ms: string | null;
  readonly problem: string | null;
}

export interface MovesData {
  readonly rows: readonly Move[];
  readonly plan: MovePlan | null;
  readonly limits: readonly { readonly broker: number; readonly rate: string }[];
  readonly cordoned: readonly number[];
  readonly may: May;
}

export interface TransactionRow {
  readonly id: string;
  readonly producer_id: string;
  readonly state: string;
  readonly coordinator: number;
}

export interface Transaction {
  readonly id: string;
  readonly producer_id: string;
  readonly producer_epoch: number;
  readonly state: string;
  readonly coordinator: number;
  readonly timeout_ms: string | null;
  readonly started_ms: string | null;
  readonly partitions: Assignment;
  readonly may: May;
}

export interface Acl {
  readonly resource: string;
  readonly name: string;
  readonly pattern: string;
  readonly principal: string;
  readonly host: string;
  readonly operation: string;
  readonly permission: string;
}

export interface User {
  readonly name: string;
  readonly mechanisms: readonly { readonly name: string; readonly iterations: number }[];
}

export interface Quota {
  readonly entity: Readonly<Record<string, string | null>>;
  readonly limits: Readonly<Record<string, number>>;
}

export interface Hit {
  readonly kind: "topic" | "group" | "broker" | "transaction" | "user";
  readonly name: string;
  readonly text: string;
}
