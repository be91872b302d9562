/** Everything that has a text in its name. */

import { useMemo } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Hit } from "../lib/contract";
import { useSettled, useTitle } from "../lib/hooks";
import { useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { Empty, Filter, Head, Partial, ProblemBox } from "../ui/basics";
import { hitLink } from "../ui/palette";
import { Table, type Column } from "../ui/table";

export function Search({ cluster }: { cluster: string }) {
  const [text, setText] = useQuery("q");
  const asked = useSettled(text.trim(), 150);
  useTitle(asked === "" ? "Search" : `Search for ${asked}`);
  const { answer, problem, stale, reload } = useRead<readonly Hit[]>(asked === "" ? null : inCluster(cluster, ["search"], { q: asked, limit: "100" }));
  const columns = useMemo(
    (): readonly Column<Hit>[] => [
      { key: "kind", title: "Kind", width: 120, cell: (row) => row.kind, compare: (left, right) => left.kind.localeCompare(right.kind) },
      {
        key: "name",
        title: "Name",
        cell: (row) => {
          const to = hitLink(cluster, row);
          return to === null ? row.name : <a href={to}>{row.name}</a>;
        },
        text: (row) => row.name,
        compare: (left, right) => left.name.localeCompare(right.name),
      },
      { key: "text", title: "", wide: true, cell: (row) => <span class="soft">{row.text}</span>, text: (row) => row.text },
    ],
    [cluster],
  );
  return (
    <div class="filled">
      <Head title="Search" />
      <div class="tools">
        <Filter label="Search in all names" value={text} onChange={setText} placeholder="Part of a name" />
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {answer !== null && <Table label="Found" rows={answer.data} columns={columns} rowKey={(row) => `${row.kind} ${row.name}`} sortKey="sort" fill keys stale={stale} empty={<Empty title={`Nothing has “${asked}” in its name`}>Topics, groups, brokers, transactions and users are searched.</Empty>} />}
      {asked === "" && <Empty title="Enter part of a name">Topics, groups, brokers, transactions and users are searched. Records are searched on their topic's page.</Empty>}
    </div>
  );
}
