/** `useRead`: an answer of the API that is kept while a newer one is on its way, and read again while the page is open. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem, read } from "./api";
import type { Answer } from "./contract";

export interface Reading<T> {
  readonly answer: Answer<T> | null;
  readonly problem: Problem | null;
  /** A request is on its way. */
  readonly busy: boolean;
  /** The answer shown belongs to another path: draw it dimmed. */
  readonly stale: boolean;
  readonly reload: () => void;
}

/** Answers of pages seen lately, so that going back shows something at once. */
const kept = new Map<string, Answer<unknown>>();
const KEPT = 40;

function keep(path: string, answer: Answer<unknown>): void {
  kept.delete(path);
  kept.set(path, answer);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(oldest);
  }
}

/** Forgets all answers: after a login, a logout or a change. */
export function forgetAnswers(): void {
  kept.clear();
}

/** Reads a path, every `every` milliseconds again while the tab is visible (0: once). A null path reads nothing. */
export function useRead<T>(path: string | null, every = 0): Reading<T> {
  const [state, setState] = useState<{ of: string | null; answer: Answer<T> | null; problem: Problem | null; busy: boolean }>(() => ({
    of: path,
    answer: path === null ? null : ((kept.get(path) as Answer<T> | undefined) ?? null),
    problem: null,
    busy: path !== null,
  }));
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  const answered = useRef(0);

  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    let timer = 0;
    const again = (wait: number): void => {
      if (every > 0 || wait > 0) timer = window.setTimeout(once, Math.max(every, wait));
    };
    const once = (): void => {
      if (document.hidden) return void again(1000);
      setState((old) => {
        const known = old.of === path ? null : (kept.get(path) as Answer<T> | undefined);
        return known ? { of: path, answer: known, problem: null, busy: true } : { ...old, busy: true };
      });
      // One who asks to read again wants no answer that the console has kept for long.
      const hurried = answered.current !== round;
      answered.current = round;
      read<T>(path, abort.signal, hurried).then(
        (answer) => {
          keep(path, answer as Answer<unknown>);
          if (abort.signal.aborted) return;
          setState({ of: path, answer, problem: null, busy: false });
          again(0);
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const problem = error instanceof Problem ? error : new Problem(0, "Fault", String(error));
          setState((old) => ({ ...old, problem, busy: false }));
          // A console that restarts, or a cluster that comes back, is noticed without a click.
          if (problem.status === 0 || problem.status >= 502) again(5000);
        },
      );
    };
    once();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, every, round]);

  const answer = path === null ? null : state.answer;
  return { answer, problem: state.problem, busy: state.busy, stale: answer !== null && state.of !== path, reload };
}
