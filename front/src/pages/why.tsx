/** Why a group is stuck: the primary cause with its proof, what else was found, what is fine, what is not visible from here. */

import { useEffect, useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Finding, Verdict } from "../lib/contract";
import { duration } from "../lib/format";
import { useNow } from "../lib/hooks";
import { useQuery } from "../lib/location";
import { useRead } from "../lib/reading";
import { Action, Amount, Badge, Choice, Command, Fact, Partial, ProblemBox, Time } from "../ui/basics";
import { Icon } from "../ui/icons";

const spans = (now: string): readonly (readonly [string, string])[] => [...new Set(["3", "6", "15", "30", now])].sort((left, right) => Number(left) - Number(right)).map((each) => [each, `${each} s`] as const);

export function Why({ cluster, group }: { cluster: string; group: string }) {
  const [seconds, setSeconds] = useQuery("seconds", "6");
  const { answer, problem, busy, stale, reload } = useRead<Verdict>(inCluster(cluster, ["group", "why"], { id: group, seconds }));
  const verdict = answer?.data;
  return (
    <div class="scroll why">
      <div class="tools">
        <Choice label="Watch for" value={seconds} options={spans(seconds)} onChange={setSeconds} />
        <Action icon="reload" onClick={reload} disabled={busy}>
          Look again
        </Action>
        {busy && <Watching seconds={Number(seconds)} />}
      </div>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {verdict !== undefined && (
        <div class={stale || busy ? "stale" : ""} aria-busy={busy} aria-live="polite">
          <div class="head-facts">
            <Fact name="State">{verdict.state}</Fact>
            <Fact name="Lag">
              <Amount value={verdict.lag} />
            </Fact>
            <Fact name="Watched">{duration(verdict.watched_seconds * 1000)}</Fact>
            <Fact name="Seen">
              <Time ms={answer?.as_of_ms} relative />
            </Fact>
          </div>
          {verdict.primary === null ? (
            <article class="card ok" aria-label="Verdict">
              <h2>
                <Icon name="ok" /> Nothing holds the group up, as far as can be seen from here
              </h2>
            </article>
          ) : (
            <FindingCard finding={verdict.primary} primary />
          )}
          {verdict.contributing.length > 0 && <h2>Also</h2>}
          {verdict.contributing.map((each) => (
            <FindingCard key={each.cause} finding={each} />
          ))}
          {verdict.notes.length > 0 && <h2>Looks odd and is normal, or is not certain</h2>}
          {verdict.notes.map((each) => (
            <FindingCard key={each.cause} finding={each} note />
          ))}
          <Points title="Checked and fine" icon="ok" points={verdict.fine} />
          <Points title="Not visible from here" icon="note" points={verdict.not_visible} />
        </div>
      )}
    </div>
  );
}

function Watching({ seconds }: { seconds: number }) {
  const [start] = useState(Date.now());
  const now = useNow(500);
  const left = Math.ceil(seconds - (now - start) / 1000);
  return (
    <span role="status">
      <Badge tone="busy">watching the group for {seconds} s</Badge>
      <progress max={seconds} value={Math.min(seconds, (now - start) / 1000)} aria-label={`${Math.max(0, left)} seconds left`} />
    </span>
  );
}

function FindingCard({ finding, primary = false, note = false }: { finding: Finding; primary?: boolean; note?: boolean }) {
  const tone = note ? "note" : primary && finding.certain ? "error" : "warning";
  return (
    <article class={`card ${tone}`} aria-label={primary ? "Primary cause" : finding.title}>
      <h2>
        <Icon name={tone} /> {finding.title}
        <span class="tag">{finding.cause}</span>
        {!finding.certain && <span class="tag">not certain</span>}
      </h2>
      {finding.evidence.length > 0 && (
        <ul class="evidence">
          {finding.evidence.map((line, index) => (
            <li key={index}>{line}</li>
          ))}
        </ul>
      )}
      <p>{finding.advice}</p>
      <Command text={finding.command} />
    </article>
  );
}

function Points({ title, icon, points }: { title: string; icon: "ok" | "note"; points: readonly string[] }) {
  if (points.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul class="checks">
        {points.map((point, index) => (
          <li key={index}>
            <Icon name={icon} /> {point}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The verdict in one line on the group's first tab; it looks once. */
export function WhyLine({ cluster, group, to }: { cluster: string; group: string; to: string }) {
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(true), 300);
    return () => clearTimeout(timer);
  }, []);
  const { answer, problem, busy } = useRead<Verdict>(asked ? inCluster(cluster, ["group", "why"], { id: group, seconds: "6" }) : null);
  if (problem !== null) return <p class="verdict soft">No verdict: {problem.message}</p>;
  const verdict = answer?.data;
  if (verdict === undefined) {
    return (
      <p class="verdict" role="status">
        <Badge tone="busy">watching the group for 6 s</Badge>
      </p>
    );
  }
  const primary = verdict.primary;
  return (
    <p class={`verdict ${busy ? "stale" : ""}`} role="status">
      {primary === null ? <Badge tone="ok">Nothing holds the group up, as far as can be seen from here</Badge> : <Badge tone={primary.certain ? "error" : "warning"}>{primary.title}</Badge>}{" "}
      <a href={to}>{primary === null ? "What was checked" : "Proof and what to do"}</a>
    </p>
  );
}
