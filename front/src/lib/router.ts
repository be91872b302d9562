/** Paths of the console's pages, below the base path that the server states in <base>. Pure: no window, no history. */

/** A page with the names in its path. `tab` is empty for the first tab. */
export interface Route {
  readonly page: string;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Makes one path segment of any name. Browsers drop the segments "", "." and ".." even when they are percent-encoded, and a group
 * may have each of these names, so such a name gets a "~" in front, and so does one that begins with "~".
 */
export function segment(name: string): string {
  const escaped = name === "" || name === "." || name === ".." || name.startsWith("~") ? `~${name}` : name;
  return encodeURIComponent(escaped);
}

/** The name that `segment` encoded. A segment that is no valid percent-encoding stands for itself. */
export function unsegment(text: string): string {
  let name = text;
  try {
    name = decodeURIComponent(text);
  } catch {
    // as it is
  }
  return name.startsWith("~") ? name.slice(1) : name;
}

/** A path of segments, each a name: `path("topics", "a/b")` is `topics/a%2Fb`. */
export function path(...names: readonly string[]): string {
  return names.map(segment).join("/");
}

/** Finds the page of a path below the base. Patterns are tried in order; `:name` takes one segment, `:name?` one or none. */
export function match(patterns: readonly (readonly [page: string, pattern: string])[], below: string): Route | null {
  const parts = below.replace(/^\/+|\/+$/g, "").split("/").filter((part) => part !== "");
  for (const [page, pattern] of patterns) {
    const params = matchOne(pattern.split("/").filter((part) => part !== ""), parts);
    if (params !== null) return { page, params };
  }
  return null;
}

function matchOne(pattern: readonly string[], parts: readonly string[]): Record<string, string> | null {
  if (parts.length > pattern.length) return null;
  const params: Record<string, string> = {};
  for (const [index, want] of pattern.entries()) {
    const part = parts[index];
    if (!want.startsWith(":")) {
      if (part !== want) return null;
      continue;
    }
    const optional = want.endsWith("?");
    if (part === undefined && !optional) return null;
    params[want.slice(1, optional ? -1 : undefined)] = part === undefined ? "" : unsegment(part);
  }
  return params;
}

/** The part of a pathname below the base path, or null where it lies outside. `base` ends with "/". */
export function below(base: string, pathname: string): string | null {
  if (pathname.startsWith(base)) return pathname.slice(base.length);
  return `${pathname}/` === base ? "" : null;
}

/** A query string with these changes: an empty or undefined value removes the key. Keys keep their order, so that links compare. */
export function withQuery(search: string, changes: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
