/** Login by a provider: the address that begins it, and what an address says after one that failed. */

/** `place`: path and query below the base, as the address has them. */
export function signInLink(place: string): string {
  const query = new URLSearchParams();
  const [path = "", search = ""] = place.split("?", 2);
  const kept = new URLSearchParams(search);
  kept.delete("login");
  const rest = kept.toString();
  const to = rest === "" ? path : `${path}?${rest}`;
  if (to !== "") query.set("to", to);
  const text = query.toString();
  return `api/v1/login/oidc${text === "" ? "" : `?${text}`}`;
}

const REASONS: ReadonlyMap<string, string> = new Map(Object.entries({
  denied: "The provider did not log you in.",
  expired: "The login took too long, or was begun in another tab. Begin it again.",
  failed: "The provider's answer could not be used. The console's log has the reason.",
  "no-role": "You are known, but have no role in this console. Ask its operator for one.",
  busy: "Too many attempts. Try again in a minute.",
  unavailable: "The provider does not answer. Try again later; the console's log says more.",
}));

/** Why the last login failed; null for an address that says nothing of it. */
export function signInFailure(search: string): string | null {
  const code = new URLSearchParams(search).get("login");
  return code === null ? null : (REASONS.get(code) ?? null);
}
