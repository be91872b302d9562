/** A key, a value or a header: its exact text, how it was decoded, and why other decoders refused. Text nodes only. */

import { useMemo, useState } from "preact/hooks";
import type { Payload } from "../lib/contract";
import { bytes, exact } from "../lib/format";
import { laidOut, tokens, type Token } from "../lib/json";
import { Check, Copy } from "./basics";
import { Icon } from "./icons";

/** Characters of a payload that are drawn at once. */
const PAGE = 65_536;
/** Tokens that are coloured; longer documents are laid out without colours. */
const COLOURED = 4000;
const LAID_OUT = 200_000;

/** A payload in one line of a table. */
export function PayloadLine({ payload, nothing }: { payload: Payload | null; nothing: string }) {
  if (payload === null) return <span class="tag">{nothing}</span>;
  if (payload.masked) return <span class="tag">masked</span>;
  return (
    <span class="payload-line">
      {payload.text.slice(0, 400).replace(/\s+/g, " ")}
      {(payload.cut || payload.text.length > 400) && " …"}
    </span>
  );
}

export function PayloadView({ name, payload, nothing, download, onFull, fullBytes }: {
  name: string;
  payload: Payload | null;
  nothing: string;
  /** The address of the raw bytes. */
  download?: string;
  /** Loads the whole payload. */
  onFull?: () => void;
  fullBytes: number;
}) {
  const [asStored, setAsStored] = useState(false);
  const shown = useMemo(() => (payload === null ? null : layOut(payload.text)), [payload]);
  if (payload === null) {
    return (
      <section class="payload" aria-label={name}>
        <h3>{name}</h3>
        <p class="soft">{nothing}</p>
      </section>
    );
  }
  return (
    <section class="payload" aria-label={name}>
      <header>
        <h3>{name}</h3>
        <span class="soft" title={`${exact(payload.size)} bytes`}>
          {payload.decoder}, {bytes(payload.size)}
          {payload.schema && `, schema ${payload.schema.id ?? payload.schema.guid} (${payload.schema.type}${payload.schema.subject === null ? "" : ` of ${payload.schema.subject}`})`}
        </span>
        <span class="spring" />
        {shown?.laid && <Check label="as stored" checked={asStored} onChange={setAsStored} />}
        <Copy text={payload.text} what={`the ${name.toLowerCase()}`} />
        {download && (
          <a class="button quiet" href={download} download title="Download the bytes">
            <Icon name="download" />
            <span class="hidden">Download the bytes of the {name.toLowerCase()}</span>
          </a>
        )}
      </header>
      {payload.masked && <p class="box note">Your login sees this masked.</p>}
      <Text text={asStored || shown === null || shown.plain === null ? payload.text : shown.plain} coloured={asStored ? null : (shown?.coloured ?? null)} label={name} />
      {payload.cut && (
        <p class="box warning cut">
          <span>
            <Icon name="warning" /> The text ends early: the {name.toLowerCase()} has {bytes(payload.size)}.
          </span>
          {onFull && payload.size <= fullBytes ? (
            <button type="button" onClick={onFull}>
              Load whole
            </button>
          ) : (
            <span class="soft">{payload.size > fullBytes ? `More than ${bytes(fullBytes)} are not shown: download the bytes.` : ""}</span>
          )}
        </p>
      )}
      {payload.refused.length > 0 && (
        <details class="refused">
          <summary>Decoders that refused</summary>
          <dl>
            {payload.refused.map((each) => (
              <div key={each.decoder}>
                <dt>{each.decoder}</dt>
                <dd>{each.reason}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </section>
  );
}

interface Shown {
  readonly laid: boolean;
  readonly plain: string | null;
  readonly coloured: readonly Token[] | null;
}

function layOut(text: string): Shown {
  const first = text.trimStart()[0];
  const found = first === "{" || first === "[" ? tokens(text, LAID_OUT) : null;
  if (found === null) return { laid: false, plain: null, coloured: null };
  const out = laidOut(found);
  const plain = out.map((token) => token.text).join("");
  return { laid: true, plain, coloured: found.length <= COLOURED && plain.length <= PAGE ? out : null };
}

function Text({ text, coloured, label }: { text: string; coloured: readonly Token[] | null; label: string }) {
  const [page, setPage] = useState(0);
  const pages = Math.max(1, Math.ceil(text.length / PAGE));
  const at = Math.min(page, pages - 1);
  return (
    <>
      <pre class="text" tabIndex={0} role="group" aria-label={`Text of the ${label.toLowerCase()}`}>
        {coloured === null
          ? text.slice(at * PAGE, (at + 1) * PAGE)
          : coloured.map((token, index) => (token.kind === "mark" ? token.text : <span key={index} class={`json-${token.kind}`}>{token.text}</span>))}
      </pre>
      {pages > 1 && (
        <p class="pages">
          <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
            <Icon name="left" /> Before
          </button>
          <span role="status">
            part {at + 1} of {pages}
          </span>
          <button type="button" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>
            After <Icon name="right" />
          </button>
        </p>
      )}
    </>
  );
}
