/** The login. The address stays, so that the page asked for is shown afterwards. */

import { useEffect, useRef, useState } from "preact/hooks";
import { login, Problem } from "../lib/api";
import type { Session } from "../lib/contract";
import { useTitle } from "../lib/hooks";
import { usePlace } from "../lib/location";
import { signInFailure, signInLink } from "../lib/sign_in";
import { Action, Field } from "../ui/basics";
import { Icon } from "../ui/icons";

export function Login({ session, onLogin }: { session: Session; onLogin: (session: Session) => void }) {
  useTitle("Log in");
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const send = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      onLogin(await login(user, password));
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, "Fault", String(error)));
      setPassword("");
      setBusy(false);
    }
  };
  const { path, search } = usePlace();
  const failure = signInFailure(search);
  const byProvider = session.oidc !== null && (
    <a class={session.passwords ? "button" : "button primary"} href={signInLink(path + search)}>
      Log in with {session.oidc.title}
    </a>
  );
  if (!session.passwords) {
    return (
      <main class="login">
        <section aria-label="Log in">
          <h1>tidelog console</h1>
          {byProvider}
          <Refused text={failure} />
        </section>
      </main>
    );
  }
  return (
    <main class="login">
      <form
        aria-label="Log in"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <h1>tidelog console</h1>
        <Field label="User" wide>
          <input ref={first} name="username" autocomplete="username" required value={user} onInput={(event) => setUser(event.currentTarget.value)} />
        </Field>
        <Field label="Password" wide>
          <input type="password" name="password" autocomplete="current-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
        </Field>
        <Action type="submit" primary disabled={busy}>
          {busy ? "Logging in …" : "Log in"}
        </Action>
        <Refused text={problem === null ? failure : refusal(problem)} />
        {byProvider}
      </form>
    </main>
  );
}

function Refused({ text }: { text: string | null }) {
  return (
    <div role="alert">
      {text !== null && (
        <p class="refusal">
          <Icon name="error" /> {text}
        </p>
      )}
    </div>
  );
}

function refusal(problem: Problem): string {
  if (problem.status === 401) return "User or password is wrong.";
  if (problem.status === 429) return `Too many attempts. Try again ${problem.retryAfter === null ? "later" : `in ${problem.retryAfter} s`}.`;
  return problem.detail || problem.title;
}
