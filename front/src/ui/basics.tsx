/** Small parts of every page. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { advice, type Problem } from "../lib/api";
import type { Answer } from "../lib/contract";
import { ago, bytes, exact, local, short, utc, type Count } from "../lib/format";
import { useNow } from "../lib/hooks";
import { Icon, type IconName } from "./icons";

export type Tone = "ok" | "warning" | "error" | "note" | "idle" | "busy";

/** A state by icon, word and colour. */
export function Badge({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      <Icon name={tone} />
      {children}
    </span>
  );
}

/** A count, short, with all digits in its title; nothing where it is unknown. */
export function Amount({ value, unknown = "unknown" }: { value: Count | null | undefined; unknown?: string }) {
  if (value === null || value === undefined) return <span class="unknown">{unknown}</span>;
  return (
    <span class="number" title={exact(value)}>
      {short(value)}
    </span>
  );
}

/** All digits: offsets and ids, which are compared and copied. */
export function Exact({ value }: { value: Count | null | undefined }) {
  return value === null || value === undefined ? <span class="unknown">unknown</span> : <span class="number">{String(value)}</span>;
}

export function Bytes({ value }: { value: Count | null | undefined }) {
  if (value === null || value === undefined) return <span class="unknown">unknown</span>;
  return (
    <span class="number" title={`${exact(value)} bytes`}>
      {bytes(value)}
    </span>
  );
}

/** Local time, UTC in the title. */
export function Time({ ms, relative = false }: { ms: string | null | undefined; relative?: boolean }) {
  if (ms === null || ms === undefined) return <span class="unknown">unknown</span>;
  const at = Number(ms);
  return (
    <time class="number" title={relative ? `${local(at)}\n${utc(at)}` : utc(at)}>
      {relative ? <Ago at={at} /> : local(at)}
    </time>
  );
}

function Ago({ at }: { at: number }) {
  return <>{ago(at, useNow(1000))}</>;
}

/** Copies without the clipboard API, which browsers have only on HTTPS and on localhost. */
function copyOld(text: string, parent: Element): boolean {
  const area = document.createElement("textarea");
  area.className = "hidden";
  area.value = text;
  parent.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** A button that copies text, and says so. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [copied, setCopied] = useState<"" | "copied" | "failed">("");
  const button = useRef<HTMLButtonElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied("copied");
    } catch {
      setCopied(copyOld(text, button.current?.parentElement ?? document.body) ? "copied" : "failed");
    }
    setTimeout(() => setCopied(""), 1500);
  };
  return (
    <button ref={button} type="button" class="quiet" onClick={copy} title={`Copy ${what}`}>
      <Icon name={copied === "copied" ? "ok" : copied === "failed" ? "error" : "copy"} />
      <span class="hidden">Copy {what}</span>
      <span class="hidden" role="status">
        {copied}
      </span>
    </button>
  );
}

/** A command line to copy. */
export function Command({ text }: { text: string | null | undefined }) {
  if (!text) return null;
  return (
    <div class="command">
      <code tabIndex={0} role="group" aria-label="Command">
        {text}
      </code>
      <Copy text={text} what="the command" />
    </div>
  );
}

/** Why there is nothing to see, and what to do. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p class="strong">{title}</p>
      {children && <p>{children}</p>}
      <Command text={command} />
    </div>
  );
}

/** A refusal with what to do about it. */
export function ProblemBox({ problem, retry }: { problem: Problem | null; retry?: () => void }) {
  if (problem === null) return null;
  const hint = advice(problem);
  return (
    <div class="box error" role="alert">
      <p class="strong">
        <Icon name="error" /> {problem.title}
        {problem.kafka && (
          <span class="mono">
            {" "}
            {problem.kafka.name} ({problem.kafka.code})
          </span>
        )}
      </p>
      {problem.detail !== "" && problem.detail !== problem.title && <p>{problem.detail}</p>}
      {hint !== "" && <p class="soft">{hint}</p>}
      {retry && (
        <button type="button" onClick={retry}>
          <Icon name="reload" /> Try again
        </button>
      )}
    </div>
  );
}

/** What could not be asked; the rest of the page stands. */
export function Partial({ answer }: { answer: Answer<unknown> | null }) {
  if (answer === null || answer.partial.length === 0) return null;
  return (
    <details class="box warning">
      <summary>
        <Icon name="warning" /> {answer.partial.length === 1 ? "One part is missing" : `${answer.partial.length} parts are missing`}: {answer.partial[0]?.what}
        {answer.partial.length > 1 && " and others"}
      </summary>
      <ul>
        {answer.partial.map((part) => (
          <li key={part.what}>
            <b>{part.what}</b>: {part.error}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** When the cluster was asked, and a button to ask again. */
export function AsOf({ answer, busy, reload }: { answer: Answer<unknown> | null; busy: boolean; reload: () => void }) {
  return (
    <span class="as-of">
      {answer && <Time ms={answer.as_of_ms} relative />}
      <button type="button" class="quiet" onClick={reload} title="Read again" aria-busy={busy}>
        <Icon name={busy ? "busy" : "reload"} />
        <span class="hidden">Read again</span>
      </button>
    </span>
  );
}

/** The head of a page: a heading, what it is part of, and what can be done. */
export function Head({ title, above, children, aside }: { title: ComponentChildren; above?: ComponentChildren; children?: ComponentChildren; aside?: ComponentChildren }) {
  return (
    <header class="head">
      <div class="head-title">
        {above && <p class="above">{above}</p>}
        <h1>{title}</h1>
      </div>
      {children && <div class="head-facts">{children}</div>}
      {aside && <div class="head-aside">{aside}</div>}
    </header>
  );
}

/** A word and its value in the head of a page. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <span class="fact">
      <span class="soft">{name}</span> {children}
    </span>
  );
}

/** Links to the tabs of a page. */
export function Tabs({ tabs, current, label }: { tabs: readonly { id: string; title: string; to: string }[]; current: string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.id} href={tab.to} aria-current={tab.id === current ? "page" : undefined}>
          {tab.title}
        </a>
      ))}
    </nav>
  );
}

/** A labelled field. */
export function Field({ label, children, hint, wide = false }: { label: string; children: ComponentChildren; hint?: ComponentChildren; wide?: boolean }) {
  return (
    <label class={wide ? "field wide" : "field"}>
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function Choice({ label, value, options, onChange, hidden = false }: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, title: string])[];
  onChange: (value: string) => void;
  hidden?: boolean;
}) {
  return (
    <label class={hidden ? "field bare" : "field"}>
      <span class={hidden ? "hidden" : undefined}>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([key, title]) => (
          <option key={key} value={key} selected={key === value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Check({ label, checked, onChange }: { label: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

/** The filter field of a list; "/" focuses it, Escape clears it, then leaves it. */
export function Filter({ label, value, onChange, placeholder = "Filter" }: { label: string; value: string; onChange: (value: string) => void; placeholder?: string }) {
  return (
    <label class="filter">
      <span class="hidden">{label}</span>
      <Icon name="search" />
      <input
        type="search"
        data-filter
        value={value}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onChange(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          if (event.currentTarget.value !== "") onChange("");
          else event.currentTarget.blur();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

/** Anything while it is read for the first time. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      <Icon name="busy" /> Reading {what} …
    </p>
  );
}

export function Action({ icon, children, onClick, disabled = false, title, danger = false, primary = false, type = "button" }: {
  icon?: IconName;
  children: ComponentChildren;
  onClick?: () => void;
  disabled?: boolean;
  title?: string;
  danger?: boolean;
  primary?: boolean;
  type?: "button" | "submit";
}) {
  return (
    <button type={type} class={danger ? "danger" : primary ? "primary" : undefined} onClick={onClick} disabled={disabled} title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}
