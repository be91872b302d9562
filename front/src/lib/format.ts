/** Numbers, sizes and times as people read them. Counts arrive as decimal strings, because they may exceed 2^53. Pure. */

export type Count = string | number | bigint;

/** An integer of any size, or null where the text is none. */
export function integer(value: Count | null | undefined): bigint | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isFinite(value) ? BigInt(Math.trunc(value)) : null;
  return /^-?\d+$/.test(value) ? BigInt(value) : null;
}

/** All digits, in groups of three with a narrow space that does not break: `1 234 567`. */
export function exact(value: Count | null | undefined): string {
  const whole = integer(value);
  if (whole === null) return value === null || value === undefined ? "" : String(value);
  return whole.toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

const STEPS = ["", "k", "M", "G", "T", "P", "E"];

/** Three digits and a unit: `1.23 M`. Below 10,000 the number is exact. */
export function short(value: Count | null | undefined): string {
  const whole = integer(value);
  if (whole === null) return value === null || value === undefined ? "" : String(value);
  const size = whole < 0n ? -whole : whole;
  if (size < 10_000n) return exact(whole);
  return (whole < 0n ? "-" : "") + scaled(Number(size), 1000, STEPS);
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** A size in bytes: `1.5 MiB`. */
export function bytes(value: Count | null | undefined): string {
  const whole = integer(value);
  if (whole === null) return "";
  if (whole < 0n) return `-${bytes(-whole)}`;
  return scaled(Number(whole), 1024, SIZES);
}

function scaled(size: number, step: number, units: readonly string[]): string {
  let unit = 0;
  let rest = size;
  // 999.5 of a unit would be printed as 1000.
  while (rest >= (unit === 0 ? step : step - 0.5) && unit < units.length - 1) {
    rest /= step;
    unit += 1;
  }
  const text = unit === 0 || rest >= 100 ? rest.toFixed(0) : rest >= 10 ? rest.toFixed(1) : rest.toFixed(2);
  return units[unit] === "" ? text : `${text}\u202f${units[unit]}`;
}

/** A rate: `1.2 k/s`, `0.35/s`. */
export function rate(perSecond: number | null | undefined): string {
  if (perSecond === null || perSecond === undefined || !Number.isFinite(perSecond)) return "";
  if (perSecond === 0) return "0/s";
  const size = Math.abs(perSecond);
  const text = size >= 10_000 ? short(Math.round(perSecond)) : size >= 100 ? perSecond.toFixed(0) : size >= 10 ? perSecond.toFixed(1) : perSecond.toFixed(2);
  return `${text}/s`;
}

/** A length of time in its two largest units: `450 ms`, `12 s`, `3 min 20 s`, `5 h 2 min`, `12 d 4 h`. */
export function duration(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined || !Number.isFinite(milliseconds)) return "";
  if (milliseconds < 0) return `-${duration(-milliseconds)}`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)}\u202fms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds}\u202fs`;
  const [large, small, units] =
    seconds < 3600
      ? [Math.floor(seconds / 60), seconds % 60, ["min", "s"]]
      : seconds < 86_400
        ? [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), ["h", "min"]]
        : [Math.floor(seconds / 86_400), Math.floor((seconds % 86_400) / 3600), ["d", "h"]];
  return small === 0 ? `${large}\u202f${units[0]}` : `${large}\u202f${units[0]} ${small}\u202f${units[1]}`;
}

/** How long ago, or how far ahead: `12 s ago`, `in 3 min`. */
export function ago(at: number, now: number): string {
  const passed = now - at;
  if (Math.abs(passed) < 1000) return "now";
  return passed > 0 ? `${duration(passed)} ago` : `in ${duration(-passed)}`;
}

const two = (number: number): string => String(number).padStart(2, "0");

/** Local time to the millisecond: `2026-11-28 05:57:05.123`. Kafka's -1 is `no timestamp`. */
export function local(milliseconds: number): string {
  if (milliseconds < 0) return "no timestamp";
  const at = new Date(milliseconds);
  if (Number.isNaN(at.getTime())) return String(milliseconds);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** UTC in ISO form, with the raw milliseconds: what stands in the title of a time. */
export function utc(milliseconds: number): string {
  const at = new Date(milliseconds);
  return milliseconds < 0 || Number.isNaN(at.getTime()) ? `${milliseconds} ms` : `${at.toISOString()} (${milliseconds} ms)`;
}

/** `1 topic`, `2 topics`. */
export function plural(count: Count, one: string, many: string = `${one}s`): string {
  return `${short(count)}\u00a0${String(count) === "1" ? one : many}`;
}

/** Orders integers of any size in decimal strings; what is none comes first. */
export function compareCounts(left: Count | null | undefined, right: Count | null | undefined): number {
  const [a, b] = [integer(left), integer(right)];
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}
