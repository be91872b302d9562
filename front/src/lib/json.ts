/**
 * JSON laid out for reading, from its text and never by way of numbers: 64-bit integers, `1e400` and repeated keys stay as they were
 * written. Pure.
 */

export type Kind = "key" | "string" | "number" | "word" | "mark";

/** A piece of laid-out JSON. */
export interface Token {
  readonly kind: Kind;
  readonly text: string;
}

const PIECE = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[[\]{}:,]|\s+/gy;

/** Pieces at most; a document that has more is left as text, so that no tab freezes. */
export const MOST_TOKENS = 20_000;

/** The tokens of JSON text without white space, or null where the text is no JSON or has more than `most` tokens. */
export function tokens(text: string, most: number = MOST_TOKENS): Token[] | null {
  const found: Token[] = [];
  PIECE.lastIndex = 0;
  let at = 0;
  while (at < text.length) {
    const piece = PIECE.exec(text)?.[0];
    if (piece === undefined || found.length > most) return null;
    at += piece.length;
    const kind = kindOf(piece);
    if (kind === null) continue;
    if (piece === ":" && found.at(-1)?.kind === "string") {
      found[found.length - 1] = { kind: "key", text: (found.at(-1) as Token).text };
    }
    found.push({ kind, text: piece });
  }
  return balanced(found) ? found : null;
}

function kindOf(piece: string): Kind | null {
  const first = piece[0] as string;
  if (/\s/.test(first)) return null;
  if (first === '"') return "string";
  if (first === "-" || (first >= "0" && first <= "9")) return "number";
  return /[a-z]/.test(first) ? "word" : "mark";
}

function balanced(found: readonly Token[]): boolean {
  const open: string[] = [];
  for (const { text } of found) {
    if (text === "{" || text === "[") open.push(text === "{" ? "}" : "]");
    else if ((text === "}" || text === "]") && open.pop() !== text) return false;
  }
  return open.length === 0 && found.length > 0;
}

/** Tokens with line breaks and two blanks a level; empty objects and arrays stay on one line. */
export function laidOut(found: readonly Token[]): Token[] {
  const out: Token[] = [];
  let depth = 0;
  const line = (): void => void out.push({ kind: "mark", text: `\n${"  ".repeat(Math.min(depth, 40))}` });
  for (const [index, token] of found.entries()) {
    const next = found[index + 1]?.text;
    const opens = token.text === "{" || token.text === "[";
    const closes = token.kind === "mark" && (token.text === "}" || token.text === "]");
    const before = found[index - 1]?.text;
    if (closes) {
      depth -= 1;
      if (before !== "{" && before !== "[") line();
    }
    out.push(token.kind === "mark" && token.text === ":" ? { kind: "mark", text: ": " } : token);
    if (token.kind !== "mark") continue;
    if (opens) {
      depth += 1;
      if (next !== "}" && next !== "]") line();
    } else if (token.text === ",") line();
  }
  return out;
}

/** JSON text laid out, or null where it is none. */
export function pretty(text: string, most: number = MOST_TOKENS): Token[] | null {
  const found = tokens(text, most);
  return found === null ? null : laidOut(found);
}
