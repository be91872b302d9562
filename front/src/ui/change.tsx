/** Every change goes through here: the form, its preview, the confirmation, what came of it. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { change, Problem } from "../lib/api";
import type { Plan } from "../lib/contract";
import { forgetAnswers } from "../lib/reading";
import { Action, Command, ProblemBox } from "./basics";
import { Dialog } from "./dialog";
import { Icon } from "./icons";

export interface ChangeProps {
  readonly title: string;
  /** The path of the API. */
  readonly path: string;
  /** The request, or null while the form is incomplete. */
  readonly body: object | null;
  /** The fields. Without them the preview is made at once. */
  readonly children?: ComponentChildren;
  readonly danger?: boolean;
  /** The button's word, as in "Delete". */
  readonly verb: string;
  readonly onDone?: (plan: Plan) => void;
  /** Closes what it stands in. */
  readonly onClose?: () => void;
}

/** The form, the preview and the run of one change. */
export function Change({ title, path, body, children, danger = false, verb, onDone, onClose }: ChangeProps) {
  const text = JSON.stringify(body);
  const [plan, setPlan] = useState<{ plan: Plan; of: string } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState<"" | "preview" | "run">("");
  const [typed, setTyped] = useState("");
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => void (alive.current = false);
  }, []);

  const send = async (dryRun: boolean): Promise<void> => {
    if (body === null || busy !== "") return;
    setBusy(dryRun ? "preview" : "run");
    setProblem(null);
    try {
      const { data } = await change(path, body, dryRun, !dryRun && plan?.plan.confirm ? typed : null);
      if (!dryRun) forgetAnswers();
      if (alive.current) setPlan({ plan: data, of: text });
      if (data.done) onDone?.(data);
    } catch (error) {
      if (alive.current) setProblem(error instanceof Problem ? error : new Problem(0, "Fault", String(error)));
    } finally {
      if (alive.current) setBusy("");
    }
  };

  useEffect(() => {
    if (children === undefined) void send(true);
  }, []);

  // What was done stays, though the page behind it is read again, and the form with it changes.
  if (plan?.plan.done) return <Done plan={plan.plan} onClose={onClose} />;
  const shown = plan !== null && plan.of === text ? plan.plan : null;
  const confirmed = shown !== null && (shown.confirm === null || shown.confirm === typed);
  return (
    <form
      class="change"
      aria-label={title}
      onSubmit={(event) => {
        event.preventDefault();
        if (shown !== null && confirmed) void send(false);
        else if (shown === null) void send(true);
      }}
    >
      {children}
      {shown === null && children !== undefined && (
        <p class="buttons">
          <Action type="submit" primary disabled={body === null || busy !== ""}>
            {busy === "preview" ? "Asking …" : "Preview"}
          </Action>
          <span class="soft">Nothing changes before you confirm.</span>
        </p>
      )}
      <div aria-live="polite">
        {busy === "preview" && children === undefined && <p class="soft">Asking what it would do …</p>}
        <ProblemBox problem={problem} />
        {shown && <PlanView plan={shown} />}
      </div>
      {shown && (
        <div class="confirm">
          {shown.confirm !== null && (
            <label class="field wide">
              <span>
                To confirm, type <b class="mono">{shown.confirm}</b>
              </span>
              <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
            </label>
          )}
          <p class="buttons">
            <Action type="submit" danger={danger} primary={!danger} disabled={!confirmed || busy !== ""}>
              {busy === "run" ? "Running …" : verb}
            </Action>
          </p>
        </div>
      )}
    </form>
  );
}

function Done({ plan, onClose }: { plan: Plan; onClose: (() => void) | undefined }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  return (
    <div class="change" role="status">
      <PlanView plan={plan} />
      {onClose && (
        <p class="buttons">
          <button ref={button} type="button" onClick={onClose}>
            Close
          </button>
        </p>
      )}
    </div>
  );
}

/** A change in a dialog of its own. */
export function ChangeDialog({ wide, ...rest }: ChangeProps & { onClose: () => void; wide?: boolean }) {
  return (
    <Dialog title={rest.title} onClose={rest.onClose} wide={wide}>
      <Change {...rest} />
    </Dialog>
  );
}

/** Rows of a plan that are drawn; the rest is counted. */
const SHOWN = 200;

export function PlanView({ plan }: { plan: Plan }) {
  const partly = plan.done && plan.failed.length > 0;
  return (
    <section class={`plan ${partly ? "warning" : plan.done ? "done" : ""}`} aria-label={plan.done ? "What was done" : "Preview"}>
      <h3>
        <Icon name={partly ? "warning" : plan.done ? "ok" : "note"} />
        {partly ? "Partly done" : plan.done ? "Done" : "Preview"}: {plan.title}
      </h3>
      {plan.rows.length > 0 && (
        <div class="table-box short" tabIndex={0} role="region" aria-label="What changes">
          <table>
            <thead>
              <tr>
                <th scope="col">What</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
                <th scope="col">Note</th>
              </tr>
            </thead>
            <tbody>
              {plan.rows.slice(0, SHOWN).map((row, index) => (
                <tr key={index}>
                  <td title={row.what}>{row.what}</td>
                  <td title={row.before ?? ""}>{row.before}</td>
                  <td title={row.after ?? ""}>{row.after}</td>
                  <td title={row.note ?? ""}>{row.note}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {plan.rows.length > SHOWN && <p class="soft">and {plan.rows.length - SHOWN} more</p>}
        </div>
      )}
      <Points title={plan.done ? "Lost" : "Will be lost"} points={plan.lost} tone="error" />
      <Points title="Take care" points={plan.warnings} tone="warning" />
      <Points title="Failed" points={plan.failed.map((each) => `${each.what}: ${each.error}`)} tone="error" />
      {plan.command !== null && (
        <>
          <p class="soft">The command that does the same:</p>
          <Command text={plan.command} />
        </>
      )}
    </section>
  );
}

function Points({ title, points, tone }: { title: string; points: readonly string[]; tone: "error" | "warning" }) {
  if (points.length === 0) return null;
  return (
    <div class={`points ${tone}`}>
      <h4>
        <Icon name={tone} /> {title}
      </h4>
      <ul>
        {points.slice(0, 50).map((point, index) => (
          <li key={index}>{point}</li>
        ))}
        {points.length > 50 && <li>and {points.length - 50} more</li>}
      </ul>
    </div>
  );
}
