/** SCRAM users and client quotas. */

import { useMemo } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Quota, User } from "../lib/contract";
import { exact } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { useQuery } from "../lib/location";
import { entityText, limitText } from "../lib/meaning";
import { useRead } from "../lib/reading";
import { AsOf, Empty, Filter, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { Table, type Column } from "../ui/table";

export function Users({ cluster }: { cluster: string }) {
  useTitle(`Users of ${cluster}`);
  const [text, setText] = useQuery("q");
  const users = useRead<readonly User[]>(inCluster(cluster, ["users"]), 30_000);
  const quotas = useRead<readonly Quota[]>(inCluster(cluster, ["quotas"]), 30_000);
  const part = text.trim().toLowerCase();
  const found = useMemo(() => (users.answer?.data ?? []).filter((row) => row.name.toLowerCase().includes(part)), [users.answer, part]);
  const limits = useMemo(() => (quotas.answer?.data ?? []).filter((row) => entityText(row).toLowerCase().includes(part)), [quotas.answer, part]);
  return (
    <>
      <Head title="Users and quotas" aside={<AsOf answer={users.answer} busy={users.busy || quotas.busy} reload={() => (users.reload(), quotas.reload())} />} />
      <div class="tools">
        <Filter label="Filter users and quotas" value={text} onChange={setText} placeholder="Part of a name" />
      </div>
      <ProblemBox problem={users.problem} retry={users.reload} />
      <Partial answer={users.answer} />
      {users.answer === null ? (
        users.problem === null && <Loading what="the users" />
      ) : (
        <Table label="Users with SCRAM passwords" rows={found} columns={USERS} rowKey={(row) => row.name} sortKey="sort" keys stale={users.stale} empty={<Empty title={part === "" ? "The cluster keeps no SCRAM users" : "No user matches"}>{part === "" ? "Clients may still log in by certificate, token or Kerberos; those are not kept in the cluster." : ""}</Empty>} />
      )}
      <h2>Quotas</h2>
      <ProblemBox problem={quotas.problem} retry={quotas.reload} />
      <Partial answer={quotas.answer} />
      {quotas.answer === null ? (
        quotas.problem === null && <Loading what="the quotas" />
      ) : (
        <Table label="Quotas" rows={limits} columns={QUOTAS} rowKey={entityText} sortKey="quotas" stale={quotas.stale} empty={<Empty title={part === "" ? "No client has a quota" : "No quota matches"} />} />
      )}
    </>
  );
}

const mechanisms = (row: User): string => row.mechanisms.map((each) => `${each.name} (${exact(each.iterations)} iterations)`).join(", ");

const USERS: readonly Column<User>[] = [
  { key: "name", title: "User", width: 260, cell: (row) => row.name, text: (row) => row.name, compare: (left, right) => left.name.localeCompare(right.name) },
  { key: "mechanisms", title: "Mechanisms", cell: mechanisms, text: mechanisms },
];

const limitsText = (row: Quota): string =>
  Object.entries(row.limits)
    .map(([key, value]) => limitText(key, value))
    .join(", ");

const QUOTAS: readonly Column<Quota>[] = [
  { key: "entity", title: "For", width: 260, cell: entityText, text: entityText, compare: (left, right) => entityText(left).localeCompare(entityText(right)) },
  { key: "limits", title: "Limits", cell: limitsText, text: limitsText },
];
