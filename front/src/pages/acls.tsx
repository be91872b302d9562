/** ACLs: the rules, a filter over all of their columns, one added, some removed. */

import { useMemo, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Acl } from "../lib/contract";
import { useTitle } from "../lib/hooks";
import { useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { useRight, useSession } from "../lib/session";
import { Action, AsOf, Badge, Choice, Empty, Field, Filter, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { Icon } from "../ui/icons";
import { Export, Table, type Column } from "../ui/table";

const keyOf = (row: Acl): string => [row.principal, row.permission, row.operation, row.resource, row.pattern, row.name, row.host].join(" ");

export function Acls({ cluster }: { cluster: string }) {
  useTitle(`ACLs of ${cluster}`);
  const session = useSession();
  const mayChange = useRight("change");
  const [text, setText] = useQuery("q");
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<readonly Acl[]>([]);
  const { answer, problem, busy, stale, reload } = useRead<{ enabled: boolean; rows: readonly Acl[] }>(inCluster(cluster, ["acls"]), 15_000);
  const data = answer?.data;
  const rows = useMemo(() => {
    const parts = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
    return (data?.rows ?? []).filter((row) => parts.every((part) => keyOf(row).toLowerCase().includes(part)));
  }, [data, text]);
  const columns = useMemo(() => columnsOf(mayChange ? (row) => setRemoving([row]) : null), [mayChange]);
  return (
    <div class="filled">
      <Head
        title="ACLs"
        aside={
          <>
            <AsOf answer={answer} busy={busy} reload={reload} />
            <Export name={`${cluster}-acls`} rows={rows} columns={columns} allowed={session.features["export"] !== false} />
            {mayChange && data?.enabled && (
              <Action icon="plus" onClick={() => setAdding(true)}>
                Add
              </Action>
            )}
          </>
        }
      >
        {data?.enabled && <span role="status">{rows.length === data.rows.length ? `${rows.length} rules` : `${rows.length} of ${data.rows.length} rules`}</span>}
      </Head>
      <div class="tools">
        <Filter label="Filter ACLs" value={text} onChange={setText} placeholder="Principal, resource, operation" />
        {mayChange && text !== "" && rows.length > 1 && (
          <Action icon="trash" onClick={() => setRemoving(rows)}>
            Remove these {rows.length}
          </Action>
        )}
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? (
        problem === null && <Loading what="the ACLs" />
      ) : !data.enabled ? (
        <Empty title="This cluster has no authorizer">Every client may do everything. Set authorizer.class.name on each broker and controller to have rules.</Empty>
      ) : (
        <Table label="ACLs" rows={rows} columns={columns} rowKey={keyOf} sortKey="sort" fill keys stale={stale} empty={data.rows.length === 0 ? <Empty title="There is no rule yet">Only super users may do anything, unless allow.everyone.if.no.acl.found is set.</Empty> : <Empty title={`No rule matches “${text}”`} />} />
      )}
      {adding && <Add cluster={cluster} onClose={() => setAdding(false)} onDone={reload} />}
      {removing.length > 0 && (
        <ChangeDialog
          title={removing.length === 1 ? "Remove an ACL" : `Remove ${removing.length} ACLs`}
          path={inCluster(cluster, ["acls", "delete"])}
          body={{ entries: removing }}
          verb="Remove"
          danger
          wide
          onClose={() => setRemoving([])}
          onDone={reload}
        />
      )}
    </div>
  );
}

const by =
  (key: keyof Acl) =>
  (left: Acl, right: Acl): number =>
    left[key].localeCompare(right[key]);

function columnsOf(remove: ((row: Acl) => void) | null): readonly Column<Acl>[] {
  return [
    { key: "principal", title: "Principal", cell: (row) => row.principal, text: (row) => row.principal, compare: by("principal") },
    { key: "permission", title: "Rule", width: 100, cell: (row) => <Badge tone={row.permission === "deny" ? "error" : "ok"}>{row.permission}</Badge>, text: (row) => row.permission, compare: by("permission") },
    { key: "operation", title: "Operation", width: 150, cell: (row) => row.operation, text: (row) => row.operation, compare: by("operation") },
    { key: "resource", title: "Resource", width: 140, cell: (row) => row.resource, text: (row) => row.resource, compare: by("resource") },
    {
      key: "name",
      title: "Name",
      cell: (row) => (
        <>
          {row.name}
          {row.pattern === "prefixed" && <span class="tag">prefix</span>}
        </>
      ),
      text: (row) => (row.pattern === "prefixed" ? `${row.name} (prefix)` : row.name),
      compare: by("name"),
    },
    { key: "host", title: "Host", width: 120, wide: true, cell: (row) => row.host, text: (row) => row.host, compare: by("host") },
    ...(remove === null
      ? []
      : [
          {
            key: "remove",
            title: "",
            width: 64,
            cell: (row: Acl) => (
              <button type="button" class="quiet" onClick={() => remove(row)} title="Remove this rule">
                <Icon name="trash" />
                <span class="hidden">Remove this rule</span>
              </button>
            ),
          },
        ]),
  ];
}

/** Operations by resource, in the words of Kafka's tools. */
export const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  topic: ["read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs", "all"],
  group: ["read", "delete", "describe", "describe_configs", "alter_configs", "all"],
  cluster: ["create", "alter", "describe", "cluster_action", "describe_configs", "alter_configs", "idempotent_write", "all"],
  transactional_id: ["describe", "write", "two_phase_commit", "all"],
  delegation_token: ["describe", "all"],
  user: ["create_tokens", "describe_tokens", "all"],
};

const pairs = (names: readonly string[]): readonly (readonly [string, string])[] => names.map((name) => [name, name.replaceAll("_", " ")] as const);

function Add({ cluster, onClose, onDone }: { cluster: string; onClose: () => void; onDone: () => void }) {
  const [principal, setPrincipal] = useState("User:");
  const [host, setHost] = useState("*");
  const [permission, setPermission] = useState("allow");
  const [resource, setResource] = useState("topic");
  const [pattern, setPattern] = useState("literal");
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<readonly string[]>(["read", "describe"]);
  const operations = OPERATIONS[resource] ?? [];
  const wanted = chosen.filter((each) => operations.includes(each));
  const named = resource === "cluster" ? "kafka-cluster" : name.trim();
  const complete = /^\w+:.+/.test(principal.trim()) && named !== "" && wanted.length > 0 && host.trim() !== "";
  const entries = wanted.map((operation): Acl => ({ resource, name: named, pattern: resource === "cluster" ? "literal" : pattern, principal: principal.trim(), host: host.trim(), operation, permission }));
  return (
    <ChangeDialog title="Add ACLs" path={inCluster(cluster, ["acls"])} body={complete ? { entries } : null} verb="Add" wide onClose={onClose} onDone={onDone}>
      <div class="row">
        <Field label="Principal" hint="User:name, or User:* for all">
          <input value={principal} onInput={(event) => setPrincipal(event.currentTarget.value)} spellcheck={false} autofocus />
        </Field>
        <Choice label="Rule" value={permission} options={pairs(["allow", "deny"])} onChange={setPermission} />
        <Field label="Host" hint="* for all">
          <input size={12} value={host} onInput={(event) => setHost(event.currentTarget.value)} spellcheck={false} />
        </Field>
      </div>
      <div class="row">
        <Choice label="Resource" value={resource} options={pairs(Object.keys(OPERATIONS))} onChange={setResource} />
        {resource !== "cluster" && (
          <>
            <Choice label="Match" value={pattern} options={[["literal", "the name"], ["prefixed", "names that begin so"]]} onChange={setPattern} />
            <Field label="Name" hint="* for all, with “the name”">
              <input value={name} onInput={(event) => setName(event.currentTarget.value)} spellcheck={false} />
            </Field>
          </>
        )}
      </div>
      <fieldset>
        <legend>Operations</legend>
        <div class="tools">
          {operations.map((each) => (
            <label class="check" key={each}>
              <input type="checkbox" checked={chosen.includes(each)} onChange={(event) => setChosen(event.currentTarget.checked ? [...chosen, each] : chosen.filter((other) => other !== each))} />
              {each.replaceAll("_", " ")}
            </label>
          ))}
        </div>
      </fieldset>
    </ChangeDialog>
  );
}
