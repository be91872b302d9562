/** The address bar as state: the path below <base> and the query string. All that a page shows follows from them. */

import { useEffect, useState } from "preact/hooks";
import { below, withQuery } from "./router";

/** The path of <base>, which ends with "/". */
export const BASE = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");

export interface Place {
  /** The path below the base, without a leading "/". */
  readonly path: string;
  /** The query string with its "?", or "". */
  readonly search: string;
}

const at = (url: { readonly pathname: string; readonly search: string }): Place => ({ path: below(BASE, url.pathname) ?? "", search: url.search });

let place = at(location);
const listeners = new Set<() => void>();

function changed(to: Place = at(location)): void {
  place = to;
  for (const listener of [...listeners]) listener();
}

addEventListener("popstate", () => changed());

/** Opens a page below the base. `replace` leaves no entry in the history: for filters while they are typed. */
export function go(to: string, replace = false): void {
  const target = BASE + to.replace(/^\//, "");
  const next = at(new URL(target, location.href));
  if (next.path === place.path && next.search === place.search) return;
  try {
    if (replace) history.replaceState(null, "", target);
    else history.pushState(null, "", target);
  } catch {
    // Browsers refuse some hundred changes in a few seconds, as when j is held down: the page goes on, and the address follows later.
  }
  const otherPage = next.path !== place.path;
  changed(next);
  if (!otherPage) return;
  document.querySelector("main")?.scrollTo(0, 0);
  // The link that had the focus may be gone: reading then begins with the page.
  setTimeout(() => {
    if (document.activeElement === document.body) document.querySelector("main")?.focus({ preventScroll: true });
  }, 50);
}

export function usePlace(): Place {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = (): void => redraw((count) => count + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return place;
}

/** One key of the query string and how to change it. A change replaces the entry unless `push`. */
export function useQuery(key: string, fallback = ""): [string, (value: string, push?: boolean) => void] {
  const { search } = usePlace();
  const value = new URLSearchParams(search).get(key) ?? fallback;
  const set = (next: string, push = false): void => setQuery({ [key]: next === fallback ? "" : next }, push);
  return [value, set];
}

/** Changes several keys of the query string in one step. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>, push = false): void {
  go(place.path + withQuery(place.search, changes), !push);
}

/** Follows links inside the console without loading the document again; others, and those with a modifier key, are the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  const inside = below(BASE, link.pathname);
  if (inside === null || inside.startsWith("api/") || inside.startsWith("static/")) return;
  if (link.hash !== "" && link.pathname === location.pathname) return;
  event.preventDefault();
  go(inside + link.search);
}
