/** One topic: its tabs, and what can be done with it as a whole. */

import { useState } from "preact/hooks";
import { inTopic } from "../lib/api";
import type { Topic } from "../lib/contract";
import { useTitle } from "../lib/hooks";
import { toSection, toTopic } from "../lib/links";
import { go } from "../lib/location";
import { useRead } from "../lib/reading";
import { Action, Amount, AsOf, Badge, Bytes, Copy, Empty, Fact, Head, Loading, Partial, ProblemBox, Tabs } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { Configs } from "./configs";
import { Messages } from "./messages";
import { leaderless, Partitions } from "./partitions";
import { Produce } from "./produce";
import { TopicGroups, TopicProducers } from "./topic_readers";

const TABS = [
  ["", "Messages"],
  ["partitions", "Partitions"],
  ["config", "Configuration"],
  ["groups", "Groups"],
  ["producers", "Producers"],
  ["produce", "Produce"],
] as const;

export function TopicPage({ cluster, topic, tab }: { cluster: string; topic: string; tab: string }) {
  useTitle(topic);
  const [deleting, setDeleting] = useState(false);
  const [deleted, setDeleted] = useState(false);
  const { answer, problem, busy, reload } = useRead<Topic>(deleted ? null : inTopic(cluster, topic, []), 10_000);
  const data = answer?.data;
  const tabs = TABS.filter(([id]) => id !== "produce" || (data?.may.change ?? false) || tab === "produce");
  const unclean = data?.partitions.filter((each) => leaderless(each) || each.in_sync.length < each.replicas.length).length ?? 0;
  return (
    <div class="filled">
      <Head
        above={<a href={toSection(cluster, "topics")}>Topics</a>}
        title={
          <>
            {topic} <Copy text={topic} what="the topic's name" />
          </>
        }
        aside={
          <>
            <AsOf answer={answer} busy={busy} reload={reload} />
            {data?.may.change && (
              <Action icon="trash" onClick={() => setDeleting(true)}>
                Delete
              </Action>
            )}
          </>
        }
      >
        {data && (
          <>
            {data.internal && <span class="tag">internal</span>}
            {unclean === 0 ? <Badge tone="ok">clean</Badge> : <Badge tone="warning">{unclean} unclean</Badge>}
            <Fact name="Records">
              <Amount value={data.records} />
            </Fact>
            <Fact name="Size">
              <Bytes value={data.bytes} />
            </Fact>
            <Fact name="Partitions">{data.partitions.length}</Fact>
            <Fact name="Replicas">{data.partitions[0]?.replicas.length ?? 0}</Fact>
            <span class="wide-only">
              <Fact name="Id">
                <span class="mono">{data.topic_id}</span>
              </Fact>
            </span>
          </>
        )}
      </Head>
      <Tabs label="Parts of the topic" current={tab} tabs={tabs.map(([id, title]) => ({ id, title, to: toTopic(cluster, topic, id) }))} />
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? problem === null && <Loading what="the topic" /> : <Tab cluster={cluster} topic={data} tab={tab} reload={reload} />}
      {deleting && (
        <ChangeDialog
          title={`Delete topic ${topic}`}
          path={inTopic(cluster, topic, ["delete"])}
          body={{}}
          verb="Delete the topic"
          danger
          onClose={() => {
            setDeleting(false);
            if (deleted) go(toSection(cluster, "topics"));
          }}
          onDone={() => setDeleted(true)}
        />
      )}
    </div>
  );
}

function Tab({ cluster, topic, tab, reload }: { cluster: string; topic: Topic; tab: string; reload: () => void }) {
  switch (tab) {
    case "":
      return topic.may.payload ? (
        <Messages cluster={cluster} topic={topic} />
      ) : (
        <Empty title="Your login may not read records of this topic">The operator of this console gives the right “payload” by topic name.</Empty>
      );
    case "partitions":
      return <Partitions cluster={cluster} topic={topic} onDone={reload} />;
    case "config":
      return (
        <Configs
          what="topic"
          read={inTopic(cluster, topic.name, ["config"])}
          change={topic.may.change ? inTopic(cluster, topic.name, ["config"]) : null}
        />
      );
    case "groups":
      return <TopicGroups cluster={cluster} topic={topic.name} />;
    case "producers":
      return <TopicProducers cluster={cluster} topic={topic.name} />;
    case "produce":
      return <Produce cluster={cluster} topic={topic} />;
    default:
      return <Empty title="This topic has no such page">Choose one of the tabs above.</Empty>;
  }
}
