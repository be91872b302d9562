/** One group: why it is stuck, lag and its course, partitions, members; its offsets moved or removed. */

import { useMemo, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Assignment, Group, Member } from "../lib/contract";
import { duration, rate } from "../lib/format";
import { useTitle } from "../lib/hooks";
import { toBroker, toGroup, toSection, toTopic } from "../lib/links";
import { assignmentText, mayForget, targetText, tasksOf, topologyText } from "../lib/meaning";
import { useRead } from "../lib/reading";
import { Action, Amount, AsOf, Copy, Empty, Fact, Head, Loading, Partial, ProblemBox, Tabs } from "../ui/basics";
import { Chart } from "../ui/chart";
import { Table, type Column } from "../ui/table";
import { DeadLettersTab } from "./dead_letters";
import { GroupChange, type Kind } from "./group_changes";
import { groupName, GroupState } from "./groups";
import { Offsets } from "./offsets";
import { Why, WhyLine } from "./why";

/** Groups whose verdict the server gives. */

export function GroupPage({ cluster, group, tab }: { cluster: string; group: string; tab: string }) {
  useTitle(groupName(group));
  const [change, setChange] = useState<Kind | "">("");
  const { answer, problem, busy, reload } = useRead<Group>(inCluster(cluster, ["group"], { id: group }), 5000);
  const data = answer?.data;
  const tabs = [
    ["", "Lag"],
    ["members", `Members${data ? ` (${data.members.length})` : ""}`],
    ...(data && data.streams !== null ? [["topology", "Topology"]] : []),
    ...(data && data.type === "share" ? [["dead-letters", "Dead letters"]] : []),
    ["why", "Why"],
  ] as [string, string][];
  return (
    <div class="filled">
      <Head
        above={<a href={toSection(cluster, "groups")}>Groups</a>}
        title={
          <>
            {groupName(group)} <Copy text={group} what="the group's name" />
          </>
        }
        aside={
          <>
            <AsOf answer={answer} busy={busy} reload={reload} />
            {data?.may.change && (
              <>
                <Action icon="edit" onClick={() => setChange("reset")}>
                  Move offsets
                </Action>
                <Action icon="trash" onClick={() => setChange("delete")}>
                  Delete
                </Action>
              </>
            )}
          </>
        }
      >
        {data && <Facts cluster={cluster} group={data} />}
      </Head>
      <Tabs label="Parts of the group" current={tab} tabs={tabs.map(([id, title]) => ({ id, title, to: toGroup(cluster, group, id) }))} />
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? problem === null && <Loading what="the group" /> : <Tab cluster={cluster} group={data} tab={tab} onForget={() => setChange("forget")} />}
      {change !== "" && data && <GroupChange kind={change} cluster={cluster} group={data} onClose={() => setChange("")} onDone={reload} />}
    </div>
  );
}

function Facts({ cluster, group }: { cluster: string; group: Group }) {
  return (
    <>
      <GroupState state={group.state} />
      <Fact name="Type">{group.type}</Fact>
      <Fact name="Lag">
        <Amount value={group.lag} />
      </Fact>
      <Fact name="Members">{group.members.length}</Fact>
      {group.assignor !== null && group.assignor !== "" && <Fact name="Assignor">{group.assignor}</Fact>}
      {group.epoch !== null && (
        <Fact name="Epoch">
          {group.epoch}
          {group.target_epoch !== null && group.target_epoch !== group.epoch && ` (assigned: ${group.target_epoch})`}
        </Fact>
      )}
      {group.coordinator !== null && (
        <Fact name="Coordinator">
          <a href={toBroker(cluster, group.coordinator)}>broker {group.coordinator}</a>
        </Fact>
      )}
    </>
  );
}

function Tab({ cluster, group, tab, onForget }: { cluster: string; group: Group; tab: string; onForget: () => void }) {
  switch (tab) {
    case "":
      return <Lag cluster={cluster} group={group} onForget={onForget} />;
    case "members":
      return <Members cluster={cluster} group={group} />;
    case "topology":
      return <Topology cluster={cluster} group={group} />;
    case "dead-letters":
      return <DeadLettersTab cluster={cluster} group={group.id} />;
    case "why":
      return <Why cluster={cluster} group={group.id} />;
    default:
      return <Empty title="This group has no such page">Choose one of the tabs above.</Empty>;
  }
}

function Lag({ cluster, group, onForget }: { cluster: string; group: Group; onForget: () => void }) {
  const points = useMemo(() => group.history.filter((point) => point.lag !== null).map((point) => [Number(point.at_ms) / 1000, Number(point.lag)] as const), [group.history]);
  return (
    <>
      <WhyLine cluster={cluster} group={group.id} to={toGroup(cluster, group.id, "why")} />
      <div class="lag">
        <Chart label="Lag in records" points={points} />
        <Rates group={group} />
      </div>
      <Offsets cluster={cluster} group={group} onForget={mayForget(group) ? onForget : null} />
    </>
  );
}

function Rates({ group }: { group: Group }) {
  const rates = group.rates;
  if (rates === null) return <p class="soft rates">Rates are known after the page was open for a little while.</p>;
  const verdict = rates.never
    ? "At these rates the group never catches up."
    : rates.caught_up_seconds === null
      ? ""
      : rates.caught_up_seconds < 1
        ? "The group has caught up."
        : `At these rates it catches up in ${duration(rates.caught_up_seconds * 1000)}.`;
  return (
    <div class="rates">
      <Fact name="Written">{rates.written === null ? "unknown" : rate(rates.written)}</Fact>
      <Fact name="Read">{rates.read === null ? "unknown" : rate(rates.read)}</Fact>
      <p class={rates.never ? "strong" : ""}>{verdict}</p>
      <p class="soft">over the last {duration(rates.seconds * 1000)}</p>
    </div>
  );
}

const count = (assignment: Assignment): number => assignment.reduce((sum, each) => sum + each.partitions.length, 0);

function Members({ cluster, group }: { cluster: string; group: Group }) {
  const columns = useMemo((): readonly Column<Member>[] => {
    const moving = group.members.some((member) => targetText(member) !== "");
    const streams = group.type === "streams";
    return [
      { key: "client", title: "Client", width: 180, cell: (row) => row.client_id, text: (row) => `${row.client_id}\n${row.id}`, compare: (left, right) => left.client_id.localeCompare(right.client_id) },
      { key: "host", title: "Host", width: 140, cell: (row) => row.host.replace(/^\//, ""), text: (row) => row.host, compare: (left, right) => left.host.localeCompare(right.host) },
      { key: "instance", title: "Instance", width: 130, wide: true, cell: (row) => row.instance_id ?? <span class="soft">dynamic</span>, text: (row) => row.instance_id ?? "" },
      { key: "epoch", title: "Epoch", width: 70, right: true, wide: true, cell: (row) => row.epoch ?? "" },
      { key: "count", title: streams ? "Active" : "Partitions", width: 90, right: true, cell: (row) => count(row.assignment), compare: (left, right) => count(left.assignment) - count(right.assignment) },
      ...(streams ? ["Active tasks", "Standby tasks", "Warm-up tasks"] : ["Assigned"]).map((title) => tasks(cluster, title, streams)),
      ...(moving ? [{ key: "target", title: "Will be assigned", wide: true, cell: targetText, text: targetText }] : []),
      ...(streams
        ? [
            { key: "process", title: "Process", width: 150, wide: true, mono: true, cell: (row: Member) => row.streams?.process_id ?? "", text: (row: Member) => row.streams?.process_id ?? "", compare: (left: Member, right: Member) => (left.streams?.process_id ?? "").localeCompare(right.streams?.process_id ?? "") },
            { key: "topology", title: "Topology", width: 110, wide: true, cell: (row: Member) => topologyText(row, group), text: (row: Member) => topologyText(row, group) },
          ]
        : []),
      { key: "id", title: "Member id", width: 220, wide: true, mono: true, cell: (row) => row.id, text: (row) => row.id },
    ];
  }, [cluster, group]);
  return (
    <Table
      label="Members"
      rows={group.members}
      columns={columns}
      rowKey={(row) => row.id}
      sortKey="sort"
      fill
      keys
      empty={<Empty title="The group has no members">Start the application. Offsets that it has committed are kept for offsets.retention.minutes after the last member has left.</Empty>}
    />
  );
}

/** The column of a kind of task; of other groups, of the partitions. */
function tasks(cluster: string, title: string, streams: boolean): Column<Member> {
  const of = (row: Member): Assignment => tasksOf(row).find((each) => each.title === title)?.now ?? [];
  return { key: title, title, cell: (row) => <Assigned cluster={cluster} assignment={of(row)} streams={streams} />, text: (row) => assignmentText(of(row)) };
}

function Assigned({ cluster, assignment, streams }: { cluster: string; assignment: Assignment; streams: boolean }) {
  if (assignment.length === 0) return <span class="soft">none</span>;
  return (
    <>
      {assignment.map((each, index) => (
        <span key={each.topic} class="inline">
          {index > 0 && "; "}
          {streams ? each.topic : <a href={toTopic(cluster, each.topic)}>{each.topic}</a>}: {each.partitions.join(", ")}
        </span>
      ))}
    </>
  );
}

function Topology({ cluster, group }: { cluster: string; group: Group }) {
  if (group.streams === null) return <Empty title="This group has no topology" />;
  const names = (topics: readonly string[]) =>
    topics.length === 0
      ? "none"
      : topics.map((topic, index) => (
          <span key={topic}>
            {index > 0 && ", "}
            <a href={toTopic(cluster, topic)}>{topic}</a>
          </span>
        ));
  return (
    <div class="scroll">
      <p class="soft">{group.streams.topology_epoch < 0 ? "No member has sent a topology yet." : `Topology epoch ${group.streams.topology_epoch}`}</p>
      {group.streams.subtopologies.map((each) => (
        <article class="card" key={each.id} aria-label={`Subtopology ${each.id}`}>
          <h2>Subtopology {each.id}</h2>
          <dl class="facts">
            <dt>Reads</dt>
            <dd>{names(each.source_topics)}</dd>
            <dt>Repartitions through</dt>
            <dd>{names(each.repartition_topics)}</dd>
            <dt>Keeps state in</dt>
            <dd>{names(each.changelog_topics)}</dd>
          </dl>
        </article>
      ))}
    </div>
  );
}
