/** The order of a table, as its address says it. Pure. */

export interface Sortable<T> {
  readonly key: string;
  readonly compare?: (left: T, right: T) => number;
}

/** Rows in the order that a text like `name` or `-lag` asks for. */
export function inOrder<T>(rows: readonly T[], columns: readonly Sortable<T>[], order: string): readonly T[] {
  const descending = order.startsWith("-");
  const compare = columns.find((column) => column.key === (descending ? order.slice(1) : order))?.compare;
  if (compare === undefined) return rows;
  return [...rows].sort(descending ? (left, right) => compare(right, left) : compare);
}
