/** NDJSON as it arrives. Pure but for `streamLines`. */

import { Problem, request } from "./api";
import type { Line } from "./contract";

/** Cuts chunks of text into lines; keeps the unfinished one. */
export class Splitter {
  #rest: string[] = [];

  /** The lines that this chunk completes, without their ends. Empty lines are left out. */
  push(chunk: string): string[] {
    const pieces = chunk.split("\n");
    const last = pieces.pop() as string;
    if (pieces.length === 0) {
      this.#rest.push(last);
      return [];
    }
    pieces[0] = this.#rest.join("") + pieces[0];
    this.#rest = last === "" ? [] : [last];
    return pieces.filter((piece) => piece.trim() !== "");
  }

  /** What came after the last line end. */
  get rest(): string {
    return this.#rest.join("");
  }
}

/** Calls with the lines of a stream, in groups as they arrive, until it ends. Throws a Problem when it is refused or cut. */
export async function streamLines(path: string, signal: AbortSignal, call: (lines: readonly Line[]) => void): Promise<void> {
  const response = await request(path, { signal });
  if (response.body === null) throw new Problem(0, "No answer", "the stream is empty");
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const splitter = new Splitter();
  let ended = false;
  for (;;) {
    let part: ReadableStreamReadResult<Uint8Array>;
    try {
      part = await reader.read();
    } catch (error) {
      if (signal.aborted) throw error;
      break;
    }
    if (part.done) break;
    const lines = splitter.push(decoder.decode(part.value, { stream: true })).map((text) => JSON.parse(text) as Line);
    ended ||= lines.some((line) => line.kind === "end");
    if (lines.length > 0) call(lines);
  }
  if (!ended && !signal.aborted) throw new Problem(0, "Cut stream", "the stream broke off before its end");
}
