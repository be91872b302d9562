/** What surrounds every page: navigation, the palette, the theme, keys of the whole console. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { logout } from "../lib/api";
import type { Session } from "../lib/contract";
import { focusFilter, useKeys } from "../lib/keys";
import { toCluster, toSection, type PageName, type Section } from "../lib/links";
import { go } from "../lib/location";
import { setTheme, theme, type Theme } from "../lib/theme";
import { Dialog } from "./dialog";
import { Icon, type IconName } from "./icons";
import { Palette } from "./palette";

/** Sections in the order of the navigation: title, key after "g", and the pages that belong to each. */
const SECTIONS: readonly { section: Section | ""; title: string; key: string; pages: readonly PageName[] }[] = [
  { section: "", title: "Health", key: "h", pages: ["health"] },
  { section: "topics", title: "Topics", key: "t", pages: ["topics", "topic", "record"] },
  { section: "groups", title: "Groups", key: "g", pages: ["groups", "group"] },
  { section: "transactions", title: "Transactions", key: "x", pages: ["transactions", "transaction"] },
  { section: "brokers", title: "Brokers", key: "b", pages: ["brokers", "broker"] },
  { section: "quorum", title: "Quorum", key: "q", pages: ["quorum"] },
  { section: "moves", title: "Moves", key: "m", pages: ["moves"] },
  { section: "acls", title: "ACLs", key: "a", pages: ["acls"] },
  { section: "users", title: "Users and quotas", key: "u", pages: ["users"] },
];

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["Ctrl K", "find a topic, group, broker or page"],
  ["/", "the filter of this page"],
  ["j  k", "next and previous row"],
  ["Enter", "open the row"],
  ["Esc", "close, clear or leave"],
  ["?", "these keys"],
  ...SECTIONS.map(({ title, key }) => [`g ${key}`, title] as const),
];

export const sectionLink = (cluster: string, section: Section | ""): string => (section === "" ? toCluster(cluster) : toSection(cluster, section));

export function Shell({ session, cluster, page, onSession, children }: {
  session: Session;
  cluster: string | null;
  page: PageName | null;
  onSession: (session: Session) => void;
  children: ComponentChildren;
}) {
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [menu, setMenu] = useState(false);
  useEffect(() => setMenu(false), [page, cluster]);
  const jumps = Object.fromEntries(SECTIONS.map(({ section, key }) => [`g ${key}`, () => (cluster === null ? false : go(sectionLink(cluster, section)))]));
  useKeys({
    "ctrl+k": () => setPalette((open) => !open),
    "/": focusFilter,
    "?": () => setHelp(true),
    ...jumps,
  });
  return (
    <div class="shell">
      <header class="bar">
        <a
          class="skip"
          href="."
          onClick={(event) => {
            event.preventDefault();
            document.getElementById("content")?.focus();
          }}
        >
          Skip to the page
        </a>
        <button type="button" class="quiet menu" aria-expanded={menu} aria-controls="sections" onClick={() => setMenu(!menu)}>
          <Icon name="menu" />
          <span class="hidden">Sections</span>
        </button>
        <a class="brand" href=".">
          tidelog
        </a>
        <Clusters session={session} cluster={cluster} />
        {session.read_only && <span class="badge note">read-only</span>}
        <span class="spring" />
        {cluster !== null && (
          <button type="button" class="find" onClick={() => setPalette(true)}>
            <Icon name="search" />
            <span>Find …</span>
            <kbd aria-hidden="true">Ctrl K</kbd>
          </button>
        )}
        <ThemeSwitch />
        {session.login && session.user !== null && (
          <button type="button" class="quiet user" onClick={() => void leave(onSession)} title={`Logged in as ${session.user}`}>
            <span class="wide-only">{session.user} ·</span> Log out
          </button>
        )}
      </header>
      <nav id="sections" class={menu ? "sections open" : "sections"} aria-label="Sections">
        {cluster !== null &&
          SECTIONS.map(({ section, title, pages }) => (
            <a key={section} href={sectionLink(cluster, section)} aria-current={page !== null && pages.includes(page) ? "page" : undefined}>
              {title}
            </a>
          ))}
        <span class="spring" />
        <button type="button" class="quiet" onClick={() => setHelp(true)}>
          Keys <kbd aria-hidden="true">?</kbd>
        </button>
        <small class="soft">{session.version}</small>
      </nav>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      {palette && cluster !== null && <Palette cluster={cluster} sections={SECTIONS.map(({ section, title }) => ({ title, to: sectionLink(cluster, section) }))} onClose={() => setPalette(false)} />}
      {help && (
        <Dialog title="Keys" onClose={() => setHelp(false)}>
          <dl class="keys">
            {KEYS.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </div>
  );
}

function Clusters({ session, cluster }: { session: Session; cluster: string | null }) {
  if (cluster === null) return null;
  const known = session.clusters.find((each) => each.id === cluster);
  if (session.clusters.length < 2) {
    return (
      <span class="cluster" title={known?.bootstrap}>
        {cluster}
      </span>
    );
  }
  return (
    <label class="cluster">
      <span class="hidden">Cluster</span>
      <select value={cluster} onChange={(event) => go(toCluster(event.currentTarget.value))}>
        {session.clusters.map((each) => (
          <option key={each.id} value={each.id} selected={each.id === cluster}>
            {each.id}
          </option>
        ))}
      </select>
    </label>
  );
}

const THEMES: readonly (readonly [Theme, IconName, string])[] = [
  ["system", "screen", "as the system"],
  ["light", "sun", "light"],
  ["dark", "moon", "dark"],
];

function ThemeSwitch() {
  const [now, setNow] = useState(theme());
  const at = THEMES.findIndex(([name]) => name === now);
  const [, icon, title] = THEMES[at] ?? THEMES[0]!;
  const next = THEMES[(at + 1) % THEMES.length]![0];
  return (
    <button
      type="button"
      class="quiet"
      title={`Theme: ${title}`}
      onClick={() => {
        setTheme(next);
        setNow(next);
      }}
    >
      <Icon name={icon} />
      <span class="hidden">Theme: {title}. Switch it</span>
    </button>
  );
}

/** Ends the session here, and at the provider where one began it. */
async function leave(onSession: (session: Session) => void): Promise<void> {
  const ended = await logout();
  if (ended.logout_url === null) onSession(ended);
  else location.assign(ended.logout_url);
}
