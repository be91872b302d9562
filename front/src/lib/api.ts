/** Requests to the API. URLs are relative to <base>; each refusal becomes a `Problem` with what the server said. */

import type { Answer, LoggedOut, Plan, Session } from "./contract";

/** A request that was refused or did not arrive (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly kafka: { readonly code: number; readonly name: string } | null = null,
    /** The column in a filter's text, from 0. */
    readonly at: number | null = null,
    /** Seconds after which to try again. */
    readonly retryAfter: number | null = null,
  ) {
    super(detail || title);
  }
}

/** What a reader can do about a refusal. */
export function advice(problem: Problem): string {
  switch (problem.status) {
    case 0:
      return "Is tidelog console still running, and is the network up? Then try again.";
    case 401:
      return "Log in again.";
    case 403:
      return "Ask the operator of this console for the right, or reload the page if your login has changed.";
    case 404:
      return "It may have been deleted since the list was read.";
    case 409:
      return "The state has changed or does not allow it: reload, look at it, and preview again.";
    case 413:
      return "Send less at once.";
    case 421:
      return "Open the console under the address that its operator has set.";
    case 429:
      return problem.retryAfter === null ? "Wait a little, then try again." : `Try again in ${problem.retryAfter} s.`;
    case 502:
      return "The cluster refused it. The error's name says why; the brokers' logs say more.";
    case 503:
      return "No broker answers. Are they running, and is the bootstrap address right?";
    case 504:
      return "Brokers are slow to answer. Try again; other pages still work.";
    default:
      return problem.status >= 500 ? "The console's log says more." : "";
  }
}

let csrf = "";
let onLogout: () => void = () => undefined;

/** Called when the server no longer knows the login. */
export function whenLoggedOut(call: () => void): void {
  onLogout = call;
}

async function problemOf(response: Response): Promise<Problem> {
  const after = Number(response.headers.get("Retry-After"));
  const retryAfter = Number.isFinite(after) && after > 0 ? after : null;
  try {
    const body = (await response.json()) as Partial<Problem>;
    const text = (value: unknown): string => (typeof value === "string" ? value : "");
    return new Problem(response.status, text(body.title) || response.statusText, text(body.detail), body.kafka ?? null, body.at ?? null, retryAfter);
  } catch {
    return new Problem(response.status, response.statusText || "Refused", `the server answered ${response.status}`, null, null, retryAfter);
  }
}

/** The response to a request, if it is a success. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`api/v1/${path}`, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "No answer", "the console's server does not answer");
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (response.status === 401 && path !== "login") onLogout();
  throw problem;
}

async function json<T>(path: string, init: RequestInit): Promise<T> {
  const response = await request(path, init);
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "Cut answer", "the answer ended before its time");
  }
}

/** `hurried`: not an answer that the server keeps for long because it costs the brokers much. */
export function read<T>(path: string, signal?: AbortSignal, hurried = false): Promise<Answer<T>> {
  return json<Answer<T>>(path, { ...(signal === undefined ? {} : { signal }), ...(hurried ? { headers: { "Cache-Control": "no-cache" } } : {}) });
}

function post<T>(path: string, body: unknown): Promise<T> {
  return json<T>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
    body: JSON.stringify(body),
  });
}

/** Previews a change (`dryRun`) or carries it out. */
export function change(path: string, body: object, dryRun: boolean, confirm: string | null = null): Promise<Answer<Plan>> {
  return post(path, { ...body, dry_run: dryRun, ...(confirm === null ? {} : { confirm }) });
}

const remember = <S extends Session>(session: S): S => {
  csrf = session.csrf;
  return session;
};

export const readSession = async (): Promise<Session> => remember(await json<Session>("session", {}));
export const login = async (user: string, password: string): Promise<Session> => remember(await post<Session>("login", { user, password }));
export const logout = async (): Promise<LoggedOut> => remember(await post<LoggedOut>("logout", {}));

/** A path below a cluster: `inCluster("main", ["topics", name], { limit: "5" })`. Arrays repeat their key. */
export function inCluster(cluster: string, segments: readonly (string | number)[], query: Readonly<Record<string, string | readonly string[] | undefined>> = {}): string {
  const path = ["clusters", cluster, ...segments].map((part) => encodeURIComponent(String(part))).join("/");
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const each of typeof value === "string" ? [value] : value) parameters.append(key, each);
  }
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A path below a topic. The topic `facts` would be another route, so its first letter is percent-encoded; the server routes on the raw path. */
export function inTopic(cluster: string, topic: string, segments: readonly (string | number)[], query: Readonly<Record<string, string | readonly string[] | undefined>> = {}): string {
  const path = inCluster(cluster, ["topics", topic, ...segments], query);
  return topic === "facts" ? path.replace("/topics/facts", "/topics/%66acts") : path;
}
