/** What is unclean in a cluster, worst first; then what is fine. */

import { inCluster } from "../lib/api";
import type { Health, HealthFinding } from "../lib/contract";
import { useTitle } from "../lib/hooks";
import { toBroker, toSection, toThing } from "../lib/links";
import { useRead } from "../lib/reading";
import { Amount, AsOf, Badge, Command, Fact, Head, Loading, Partial, ProblemBox } from "../ui/basics";
import { Icon } from "../ui/icons";

export function HealthPage({ cluster }: { cluster: string }) {
  useTitle(`Health of ${cluster}`);
  const { answer, problem, busy, stale, reload } = useRead<Health>(inCluster(cluster, ["health"]), 10_000);
  const health = answer?.data;
  return (
    <>
      <Head title="Health" above={cluster} aside={<AsOf answer={answer} busy={busy} reload={reload} />}>
        {health && (
          <>
            <Fact name="Brokers">
              <a href={toSection(cluster, "brokers")}>
                <Amount value={health.brokers} />
              </a>
            </Fact>
            <Fact name="Controller">{health.controller === null ? <span class="unknown">unknown</span> : <a href={toBroker(cluster, health.controller)}>{health.controller}</a>}</Fact>
            <Fact name="Topics">
              <a href={toSection(cluster, "topics")}>
                <Amount value={health.topics} />
              </a>
            </Fact>
            <Fact name="Partitions">
              <Amount value={health.partitions} />
            </Fact>
            <Fact name="Groups">
              <a href={toSection(cluster, "groups")}>
                <Amount value={health.groups} />
              </a>
            </Fact>
            <Fact name="Cluster id">
              <span class="mono">{health.cluster_id ?? "unknown"}</span>
            </Fact>
          </>
        )}
      </Head>
      <ProblemBox problem={problem} retry={reload} />
      <Partial answer={answer} />
      {health === undefined ? (
        problem === null && <Loading what="the cluster's health" />
      ) : (
        <div class={stale ? "stale" : undefined}>
          <Summary health={health} />
          {health.findings.map((finding, index) => (
            <FindingCard key={`${finding.kind} ${index}`} cluster={cluster} finding={finding} />
          ))}
          <section class="fine" aria-label="Checked and fine">
            <h2>Checked and fine</h2>
            {health.fine.length === 0 ? (
              <p class="soft">Nothing: see above.</p>
            ) : (
              <ul class="checks">
                {health.fine.map((each) => (
                  <li key={each}>
                    <Icon name="ok" /> {each}
                  </li>
                ))}
              </ul>
            )}
          </section>
        </div>
      )}
    </>
  );
}

function Summary({ health }: { health: Health }) {
  const count = (severity: string): number => health.findings.filter((finding) => finding.severity === severity).length;
  const [errors, warnings] = [count("error"), count("warning")];
  return (
    <p class="summary" role="status">
      {errors > 0 && <Badge tone="error">{errors === 1 ? "1 error" : `${errors} errors`}</Badge>}
      {warnings > 0 && <Badge tone="warning">{warnings === 1 ? "1 warning" : `${warnings} warnings`}</Badge>}
      {errors + warnings === 0 && <Badge tone="ok">Nothing is unclean.</Badge>}
    </p>
  );
}

function FindingCard({ cluster, finding }: { cluster: string; finding: HealthFinding }) {
  const link = finding.link === null ? null : toThing(cluster, finding.link.page, finding.link);
  return (
    <article class={`card ${finding.severity}`} aria-label={finding.title}>
      <h2>
        <Icon name={finding.severity} />
        <span class="hidden">{finding.severity}: </span>
        {link === null ? finding.title : <a href={link}>{finding.title}</a>}
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
