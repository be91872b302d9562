/** Routes of the console. */

import { Component, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Session } from "./lib/contract";
import { PATTERNS, toCluster, type PageName } from "./lib/links";
import { followLinks, go, usePlace } from "./lib/location";
import { match } from "./lib/router";
import { SessionContext, useSessionState } from "./lib/session";
import { Acls } from "./pages/acls";
import { BrokerPage, Brokers } from "./pages/brokers";
import { Clusters } from "./pages/clusters";
import { GroupPage } from "./pages/group";
import { Groups } from "./pages/groups";
import { HealthPage } from "./pages/health";
import { Login } from "./pages/login";
import { Moves, QuorumPage } from "./pages/quorum";
import { RecordPageView } from "./pages/record";
import { Search } from "./pages/search";
import { TopicPage } from "./pages/topic";
import { Topics } from "./pages/topics";
import { TransactionPage, Transactions } from "./pages/transactions";
import { Users } from "./pages/users";
import { Empty, ProblemBox } from "./ui/basics";
import { Shell } from "./ui/shell";

export function App() {
  const { session, problem, set, reload } = useSessionState();
  const { path } = usePlace();
  useEffect(() => {
    document.addEventListener("click", followLinks);
    return () => document.removeEventListener("click", followLinks);
  }, []);
  if (session === null) {
    return <main class="login">{problem && <ProblemBox problem={problem} retry={reload} />}</main>;
  }
  if (!session.logged_in) return <Login session={session} onLogin={set} />;
  const route = match(PATTERNS, path);
  const page = (route?.page ?? null) as PageName | null;
  const cluster = route?.params["cluster"] ?? null;
  const known = cluster === null || session.clusters.some((each) => each.id === cluster);
  return (
    <SessionContext.Provider value={session}>
      <Shell session={session} cluster={known ? cluster : null} page={page} onSession={set}>
        <Guard path={path}>
          {page === null ? <Nowhere /> : known ? <Page page={page} session={session} params={route?.params ?? {}} /> : <UnknownCluster cluster={cluster ?? ""} />}
        </Guard>
      </Shell>
    </SessionContext.Provider>
  );
}

function Page({ page, session, params }: { page: PageName; session: Session; params: Readonly<Record<string, string>> }) {
  const name = (key: string): string => params[key] ?? "";
  const cluster = name("cluster");
  switch (page) {
    case "clusters":
      return session.clusters.length === 1 ? <Redirect to={toCluster(session.clusters[0]!.id)} /> : <Clusters />;
    case "health":
      return <HealthPage key={cluster} cluster={cluster} />;
    case "topics":
      return <Topics key={cluster} cluster={cluster} />;
    case "topic":
      return <TopicPage key={`${cluster} ${name("topic")}`} cluster={cluster} topic={name("topic")} tab={name("tab")} />;
    case "record":
      return <RecordPageView cluster={cluster} topic={name("topic")} partition={name("partition")} offset={name("offset")} />;
    case "groups":
      return <Groups key={cluster} cluster={cluster} />;
    case "group":
      return <GroupPage key={`${cluster} ${name("group")}`} cluster={cluster} group={name("group")} tab={name("tab")} />;
    case "brokers":
      return <Brokers key={cluster} cluster={cluster} />;
    case "broker":
      return <BrokerPage key={`${cluster} ${name("broker")}`} cluster={cluster} broker={name("broker")} />;
    case "quorum":
      return <QuorumPage key={cluster} cluster={cluster} />;
    case "moves":
      return <Moves key={cluster} cluster={cluster} />;
    case "transactions":
      return <Transactions key={cluster} cluster={cluster} />;
    case "transaction":
      return <TransactionPage key={`${cluster} ${name("transaction")}`} cluster={cluster} id={name("transaction")} />;
    case "acls":
      return <Acls key={cluster} cluster={cluster} />;
    case "users":
      return <Users key={cluster} cluster={cluster} />;
    case "search":
      return <Search key={cluster} cluster={cluster} />;
  }
}

function Redirect({ to }: { to: string }) {
  useEffect(() => go(to, true), [to]);
  return null;
}

function Nowhere() {
  return (
    <Empty title="There is no such page">
      The address may be of another version of the console. Begin at <a href=".">the clusters</a>.
    </Empty>
  );
}

function UnknownCluster({ cluster }: { cluster: string }) {
  return (
    <Empty title={`This console knows no cluster ${cluster}`}>
      Its operator names the clusters when it starts, and your login may not see all of them. Choose one of <a href=".">the clusters</a>.
    </Empty>
  );
}

/** One broken page leaves the rest of the console usable. */
class Guard extends Component<{ path: string; children: ComponentChildren }, { fault: string | null }> {
  override state = { fault: null as string | null };

  override componentDidUpdate(before: { readonly path: string }): void {
    if (before.path !== this.props.path && this.state.fault !== null) this.setState({ fault: null });
  }

  override componentDidCatch(error: unknown): void {
    this.setState({ fault: error instanceof Error ? error.message : String(error) });
  }

  override render() {
    if (this.state.fault === null) return this.props.children;
    return (
      <div class="box error" role="alert">
        <p class="strong">This page failed to draw.</p>
        <p class="mono">{this.state.fault}</p>
        <button type="button" onClick={() => this.setState({ fault: null })}>
          Draw it again
        </button>
      </div>
    );
  }
}
