/** Which rows of a long table stand in the document. Pure. */

export interface Span {
  /** The first row that is drawn. */
  readonly first: number;
  /** The row after the last one that is drawn. */
  readonly end: number;
  /** Pixels above the first row. */
  readonly before: number;
  /** Pixels below the last row. */
  readonly after: number;
}

/** Rows drawn beyond each edge, so that a fast scroll shows no gap. */
export const OVERSCAN = 12;

/** The rows to draw for a scroll position. Rows are all `height` pixels high. */
export function span(scrolled: number, viewport: number, height: number, count: number, overscan: number = OVERSCAN): Span {
  const top = Math.max(0, Math.min(scrolled, Math.max(0, count * height - viewport)));
  // An even first row keeps stripes on their rows while scrolling.
  const first = Math.max(0, (Math.floor(top / height) - overscan) & ~1);
  const end = Math.min(count, Math.ceil((top + viewport) / height) + overscan);
  return { first: Math.min(first, count), end, before: Math.min(first, count) * height, after: Math.max(0, count - end) * height };
}

/** Where to scroll so that a row is wholly visible, or null where it already is. `header` covers that many pixels at the top. */
export function reveal(row: number, scrolled: number, viewport: number, height: number, header: number): number | null {
  const top = row * height;
  if (top < scrolled) return top;
  if (top + height > scrolled + viewport - header) return top + height - viewport + header;
  return null;
}
