/** One record under a link of its own. */

import { inTopic } from "../lib/api";
import type { RecordPage, Topic } from "../lib/contract";
import { useTitle } from "../lib/hooks";
import { useKeys } from "../lib/keys";
import { toRecord, toSection, toTopic } from "../lib/links";
import { go, setQuery, useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { decoders } from "../lib/search";
import { useSession } from "../lib/session";
import { AsOf, Choice, Copy, Empty, Exact, Fact, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { Icon } from "../ui/icons";
import { recordPath, RecordView } from "../ui/record";

export function RecordPageView({ cluster, topic, partition, offset }: { cluster: string; topic: string; partition: string; offset: string }) {
  useTitle(`${topic}-${partition} offset ${offset}`);
  const session = useSession();
  const [key] = useQuery("key");
  const [value] = useQuery("value");
  const chosen = { key: key === "" ? undefined : key, value: value === "" ? undefined : value };
  const { answer, problem, busy, stale, reload } = useRead<RecordPage>(recordPath(cluster, topic, { partition, offset }, chosen, false));
  const about = useRead<Topic>(inTopic(cluster, topic, []));
  const data = answer?.data;
  const step = (to: string | null | undefined): string | null => (to === null || to === undefined ? null : toRecord(cluster, topic, partition, to, chosen));
  const [before, next] = [step(data?.previous), step(data?.next)];
  const move = (to: string | null): boolean => {
    if (to !== null) go(to, true);
    return to !== null;
  };
  useKeys({ j: () => move(next), k: () => move(before) });
  const names = decoders(session.features);
  return (
    <div class="filled">
      <Head
        above={
          <>
            <a href={toSection(cluster, "topics")}>Topics</a> / <a href={toTopic(cluster, topic)}>{topic}</a> / <a href={toTopic(cluster, topic, "", { partition, mode: "offset", offset })}>partition {partition}</a>
          </>
        }
        title={
          <>
            Offset {offset} <Copy text={location.href} what="the link to this record" />
          </>
        }
        aside={<AsOf answer={answer} busy={busy} reload={reload} />}
      >
        {data && (
          <>
            <Fact name="Start">
              <Exact value={data.start} />
            </Fact>
            <Fact name="End">
              <Exact value={data.end} />
            </Fact>
          </>
        )}
      </Head>
      <div class="tools">
        <Step to={before} icon="left" title="Record before (k)" />
        <Step to={next} icon="right" title="Next record (j)" />
        <Choice label="Key" value={key === "" ? "auto" : key} options={names} onChange={(name) => setQuery({ key: name === "auto" ? "" : name })} />
        <Choice label="Value" value={value === "" ? "auto" : value} options={names} onChange={(name) => setQuery({ value: name === "auto" ? "" : name })} />
        {about.answer?.data.may.change && data?.record && (
          <a class="button" href={toTopic(cluster, topic, "produce", { from: `${partition}:${offset}` })}>
            <Icon name="copy" /> Write a copy
          </a>
        )}
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {data === undefined ? (
        problem === null && <Loading what="the record" />
      ) : data.record === null ? (
        <Empty title="There is no record at this offset">{data.reason}</Empty>
      ) : (
        <div class={stale ? "scroll stale" : "scroll"} aria-busy={stale}>
          <h2 class="hidden">The record</h2>
          <RecordView key={`${partition}:${data.record.offset}:${key}:${value}`} cluster={cluster} topic={topic} record={data.record} decoders={chosen} masked={about.answer?.data.masked ?? false} />
        </div>
      )}
    </div>
  );
}

function Step({ to, icon, title }: { to: string | null; icon: "left" | "right"; title: string }) {
  if (to === null) {
    return (
      <button type="button" disabled title={title}>
        <Icon name={icon} />
        <span class="hidden">{title}</span>
      </button>
    );
  }
  return (
    <a class="button" href={to} title={title}>
      <Icon name={icon} />
      <span class="hidden">{title}</span>
    </a>
  );
}
