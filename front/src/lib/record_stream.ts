/** The records of a topic as they stream in, drawn a few times a second however many come. */

import { useCallback, useEffect, useReducer, useRef, useState } from "preact/hooks";
import { Problem } from "./api";
import type { Line, RecordRow } from "./contract";
import { streamLines } from "./lines";

/** Rows that a live tail keeps. */
export const TAIL_ROWS = 1000;
/** Rows that a search keeps; "go on" adds to them. */
export const MOST_ROWS = 20_000;

export interface Found {
  readonly rows: readonly RecordRow[];
  readonly begin: Extract<Line, { kind: "begin" }> | null;
  readonly progress: Extract<Line, { kind: "progress" }> | null;
  readonly end: Extract<Line, { kind: "end" }> | null;
  readonly dropped: bigint;
  readonly problems: readonly { readonly partition: number | null; readonly error: string }[];
}

export const NOTHING: Found = { rows: [], begin: null, progress: null, end: null, dropped: 0n, problems: [] };

/** What is found after these lines. Pure. A tail puts the newest on top and forgets the oldest. */
export function after(found: Found, lines: readonly Line[], tail: boolean): Found {
  const fresh: RecordRow[] = [];
  let { begin, progress, end, dropped, problems } = found;
  for (const line of lines) {
    switch (line.kind) {
      case "record":
        fresh.push(line);
        break;
      case "begin":
        begin = line;
        break;
      case "progress":
        progress = line;
        break;
      case "dropped":
        dropped += BigInt(line.count);
        break;
      case "problem":
        problems = [...problems.filter((each) => each.partition !== line.partition), line];
        break;
      case "end":
        end = line;
        break;
      case "beat":
        break;
    }
  }
  const rows = fresh.length === 0 ? found.rows : tail ? [...fresh.reverse(), ...found.rows].slice(0, TAIL_ROWS) : [...found.rows, ...fresh].slice(0, MOST_ROWS);
  return { rows, begin, progress, end, dropped, problems };
}

type Step = { readonly lines: readonly Line[]; readonly tail: boolean; readonly first: boolean } | "again";

function reduce(found: Found, step: Step): Found {
  if (step === "again") return { ...found, end: null, progress: null };
  return after(step.first ? NOTHING : found, step.lines, step.tail);
}

export interface RecordStream {
  readonly found: Found;
  readonly running: boolean;
  readonly problem: Problem | null;
  /** The rows are of an earlier request. */
  readonly stale: boolean;
  readonly stop: () => void;
  readonly again: () => void;
  /** Goes on after the end, in the same direction. */
  readonly more: () => void;
}

/** Streams from `path(cursor)`; a change of `key` begins again. A null key reads nothing. */
export function useRecordStream(key: string | null, path: (cursor: string | null) => string, tail: boolean): RecordStream {
  const [found, dispatch] = useReducer(reduce, NOTHING);
  // The stream begins after the first drawing.
  const [running, setRunning] = useState(key !== null);
  const [stale, setStale] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  const abort = useRef<AbortController | null>(null);
  const how = useRef({ path, tail });
  how.current = { path, tail };

  const run = useCallback((cursor: string | null): void => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    setRunning(true);
    setProblem(null);
    if (cursor === null) setStale(true);
    else dispatch("again");
    let first = cursor === null;
    let waiting: Line[] = [];
    let timer = 0;
    const { tail: live } = how.current;
    const flush = (): void => {
      clearTimeout(timer);
      timer = 0;
      if (mine.signal.aborted || (waiting.length === 0 && !first)) return;
      dispatch({ lines: waiting, tail: live, first });
      setStale(false);
      waiting = [];
      first = false;
    };
    streamLines(how.current.path(cursor), mine.signal, (lines) => {
      waiting.push(...lines);
      if (timer === 0) timer = window.setTimeout(flush, live ? 200 : 60);
    })
      .catch((error: unknown) => {
        if (!mine.signal.aborted) setProblem(error instanceof Problem ? error : new Problem(0, "Fault", String(error)));
      })
      .finally(() => {
        flush();
        if (abort.current === mine) setRunning(false);
      });
  }, []);

  useEffect(() => {
    if (key === null) return;
    run(null);
    return () => abort.current?.abort();
  }, [key, round, run]);

  const stop = useCallback(() => {
    abort.current?.abort();
    setRunning(false);
    setStale(false);
  }, []);
  const again = useCallback(() => setRound((count) => count + 1), []);
  const cursor = found.end?.cursor ?? null;
  const more = useCallback(() => {
    if (cursor !== null) run(cursor);
  }, [cursor, run]);
  return { found, running, problem, stale, stop, again, more };
}
