/** Who is logged in and what they may do; one value for the whole console. */

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { Problem, readSession, whenLoggedOut } from "./api";
import type { Right, Session } from "./contract";
import { forgetAnswers } from "./reading";

export interface SessionState {
  readonly session: Session | null;
  readonly problem: Problem | null;
  readonly set: (session: Session) => void;
  readonly reload: () => void;
}

/** The session while a page is drawn; pages are drawn only with one. */
export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("a page was drawn without a session");
  return session;
}

/** Whether the login has a right at all; the cluster's answers say whether it has it on one name. */
export function useRight(right: Right): boolean {
  const session = useSession();
  return session.rights.includes(right) && !(right === "change" && session.read_only);
}

export function useSessionState(): SessionState {
  const [session, setSession] = useState<Session | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  const set = (next: Session): void => {
    forgetAnswers();
    setProblem(null);
    setSession(next);
  };
  useEffect(() => {
    let timer = 0;
    let alive = true;
    readSession().then(
      (next) => {
        if (alive) set(next);
      },
      (error: unknown) => {
        if (!alive) return;
        setProblem(error instanceof Problem ? error : new Problem(0, "Fault", String(error)));
        timer = window.setTimeout(() => setRound((count) => count + 1), 3000);
      },
    );
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [round]);
  useEffect(() => whenLoggedOut(() => setRound((count) => count + 1)), []);
  return { session, problem, set, reload: () => setRound((count) => count + 1) };
}
