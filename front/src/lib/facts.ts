/** Facts about rows in sight: asked in one request for those not known yet, and again when they are old. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { read } from "./api";

const OLD_MS = 20_000;
const AT_ONCE = 50;

/** Rows whose facts are asked for to sort by them. */
export const SORTED = 1000;

export interface Facts<T> {
  readonly of: (name: string) => T | undefined;
  /** The names in sight. */
  readonly want: (names: readonly string[]) => void;
  /** Changes when facts came in, so that a table draws again. */
  readonly version: number;
}

/** `path` makes the request for some names; `name` finds the name in an answer's row. */
export function useFacts<T>(path: (names: readonly string[]) => string, name: (row: T) => string): Facts<T> {
  const known = useRef(new Map<string, { row: T; at: number }>());
  const wanted = useRef<readonly string[]>([]);
  const [version, setVersion] = useState(0);
  const running = useRef<AbortController | null>(null);
  const how = useRef({ path, name });
  how.current = { path, name };

  const ask = useCallback(async (): Promise<void> => {
    if (running.current !== null || document.hidden) return;
    const abort = new AbortController();
    running.current = abort;
    try {
      for (;;) {
        const now = Date.now();
        // A thousand names, wanted for their order, are asked again less often than a screen of them.
        const old = OLD_MS * Math.max(1, wanted.current.length / AT_ONCE);
        const names = wanted.current.filter((each) => now - (known.current.get(each)?.at ?? 0) > old).slice(0, AT_ONCE);
        if (names.length === 0 || abort.signal.aborted) break;
        const answer = await read<readonly T[]>(how.current.path(names), abort.signal);
        const at = Date.now();
        for (const row of answer.data) known.current.set(how.current.name(row), { row, at });
        // A name without an answer is not asked again at once.
        for (const each of names) {
          const entry = known.current.get(each);
          if (entry !== undefined) entry.at = at;
        }
        if (names.every((each) => !known.current.has(each))) break;
        setVersion((count) => count + 1);
      }
    } catch {
      // The list's own request says what is wrong; facts stay unknown until the next round.
    } finally {
      running.current = null;
    }
  }, []);

  const want = useCallback(
    (names: readonly string[]): void => {
      wanted.current = names;
      void ask();
    },
    [ask],
  );
  const of = useCallback((each: string): T | undefined => known.current.get(each)?.row, []);
  useEffect(() => {
    const timer = setInterval(() => void ask(), 5000);
    return () => {
      clearInterval(timer);
      running.current?.abort();
    };
  }, [ask]);
  return { of, want, version };
}
