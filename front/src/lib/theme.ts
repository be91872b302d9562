/** Dark, light, or as the system says. The choice stays in this browser. */

export type Theme = "system" | "light" | "dark";

const KEY = "tidelog.theme";

export function theme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // storage is switched off
  }
}

export function setTheme(next: Theme): void {
  try {
    if (next === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // the choice holds for this page alone
  }
  applyTheme(next);
}

export function applyTheme(next: Theme = theme()): void {
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  dispatchEvent(new Event("themechange"));
}
