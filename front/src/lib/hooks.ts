/** Small hooks: a ticking clock, a delayed value, the size of an element, media queries. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** The time in milliseconds, which moves on every `every` milliseconds. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** A value that follows after it stood still for `wait` milliseconds. */
export function useSettled<T>(value: T, wait: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return settled;
}

/** Width and height of an element in CSS pixels; zeros before it is laid out. The element may come and go. */
export function useSize(ref: { readonly current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  const watched = useRef<{ element: HTMLElement | null; observer: ResizeObserver } | null>(null);
  useLayoutEffect(() => {
    const element = ref.current;
    if (watched.current?.element === element) return;
    watched.current?.observer.disconnect();
    const measure = (): void => {
      if (element === null) return;
      const next = { width: element.clientWidth, height: element.clientHeight };
      setSize((old) => (old.width === next.width && old.height === next.height ? old : next));
    };
    const observer = new ResizeObserver(measure);
    watched.current = { element, observer };
    if (element !== null) observer.observe(element);
    measure();
  });
  useEffect(() => () => watched.current?.observer.disconnect(), []);
  return size;
}

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = (): void => setMatches(list.matches);
    list.addEventListener("change", changed);
    changed();
    return () => list.removeEventListener("change", changed);
  }, [query]);
  return matches;
}

/** Sets the title of the document while the page is shown. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "tidelog console" : `${title} · tidelog console`;
  }, [title]);
}
