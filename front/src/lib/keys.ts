/** Keys of the whole console. A page adds its own with `useKeys`; keys typed into a field never count, except Escape and Ctrl-K. */

import { useEffect } from "preact/hooks";

export type Handler = (event: KeyboardEvent) => boolean | void;

const stack: Readonly<Record<string, Handler>>[] = [];
let prefix = "";

/** The name of a key with its modifiers: `j`, `ctrl+k`, `escape`. */
export function keyName(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  const name = event.key === " " ? "space" : event.key.toLowerCase();
  return `${event.ctrlKey || event.metaKey ? "ctrl+" : ""}${event.altKey ? "alt+" : ""}${name}`;
}

function inField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented) return;
  const name = keyName(event);
  if (inField(event.target) && name !== "escape" && name !== "ctrl+k") return;
  // A dialog has its own keys; the page behind it stands still.
  if (name !== "ctrl+k" && document.querySelector("dialog[open]") !== null) return;
  const whole = prefix === "" ? name : `${prefix} ${name}`;
  prefix = prefix === "" && name === "g" ? "g" : "";
  for (const keys of [...stack].reverse()) {
    const handler = keys[whole];
    if (handler === undefined) continue;
    if (handler(event) === false) continue;
    event.preventDefault();
    return;
  }
});

/** Handles these keys while the component is there; the one mounted last goes first. A handler that returns false passes the key on. */
export function useKeys(keys: Readonly<Record<string, Handler>>): void {
  useEffect(() => {
    stack.push(keys);
    return () => void stack.splice(stack.lastIndexOf(keys), 1);
  });
}

/** Focuses the page's filter field. */
export function focusFilter(): boolean {
  const field = document.querySelector<HTMLInputElement>("main [data-filter]");
  if (field === null) return false;
  field.focus();
  field.select();
  return true;
}
