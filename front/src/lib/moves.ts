/** What fields of plans of moves mean, and how far moves are. Pure. */

import type { Move, MovePlan } from "./contract";
import { integer } from "./format";

const RATE = /^(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?(?:\/s)?$/i;
const FACTORS: Readonly<Record<string, number>> = { "": 1, k: 1 << 10, m: 1 << 20, g: 1 << 30 };

/** Bytes per second as a text for the API, null for no limit, undefined while the text is no rate: `50M`, `1.5 GiB/s`. */
export function rateOf(text: string): string | null | undefined {
  if (text.trim() === "") return null;
  const found = RATE.exec(text.trim());
  if (found === null) return undefined;
  const bytes = Math.floor(Number(found[1]) * (FACTORS[(found[2] ?? "").toLowerCase()] ?? 1));
  return bytes > 0 ? String(bytes) : undefined;
}

/** Ids of brokers, null for none given, undefined while the text is no list: `1, 2,3`. */
export function brokersOf(text: string): number[] | null | undefined {
  if (text.trim() === "") return null;
  const words = text.split(",").map((word) => word.trim());
  if (!words.every((word) => /^\d{1,9}$/.test(word))) return undefined;
  return [...new Set(words.map(Number))].sort((left, right) => left - right);
}

/** A small whole number, undefined while the text is none in these bounds. */
export function countOf(text: string, least: number, most: number): number | undefined {
  const found = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
  return found >= least && found <= most ? found : undefined;
}

/** How much of a move is copied, from 0 to 1; null where brokers do not say, or nothing is copied. */
export function shareOf(move: Pick<Move, "bytes" | "copied">): number | null {
  const [whole, copied] = [integer(move.bytes), integer(move.copied)];
  if (whole === null || copied === null || whole <= 0n) return null;
  return Math.min(1, Number(copied) / Number(whole));
}

/** A sentence about a plan. */
export function stateOf(plan: MovePlan): string {
  const counts = `${plan.done} of ${plan.total} done`;
  const failed = plan.failures > 0 ? `, ${plan.failures} failed` : "";
  if (plan.ended_ms !== null) return plan.stopping ? `stopped: ${counts}${failed}` : `ended: ${counts}${failed}`;
  const rest = plan.stopping ? "no more begin" : `${plan.waiting} wait`;
  return `${counts}, ${plan.moving} under way, ${rest}${failed}`;
}
