/** A new topic, validated by the broker before it is made. */

import { useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import { settingsOf } from "../lib/meaning";
import { Field } from "../ui/basics";
import { ChangeDialog } from "../ui/change";

export function CreateTopic({ cluster, onClose, onDone }: { cluster: string; onClose: () => void; onDone: (name: string) => void }) {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("");
  const [replication, setReplication] = useState("");
  const [text, setText] = useState("");
  const { configs, wrong } = settingsOf(text);
  const number = (value: string): number | null => (value === "" ? null : Number(value));
  const body = name === "" || wrong !== null ? null : { name, partitions: number(partitions), replication: number(replication), configs };
  return (
    <ChangeDialog title="Create a topic" path={inCluster(cluster, ["topics"])} body={body} verb="Create the topic" onClose={onClose} onDone={() => onDone(name)}>
      <Field label="Name" wide>
        <input value={name} onInput={(event) => setName(event.currentTarget.value)} required maxLength={249} pattern="[a-zA-Z0-9._\-]+" spellcheck={false} autocomplete="off" autofocus />
      </Field>
      <div class="row">
        <Field label="Partitions" hint="empty: the broker's default">
          <input type="number" min={1} value={partitions} onInput={(event) => setPartitions(event.currentTarget.value)} />
        </Field>
        <Field label="Replication factor" hint="empty: the broker's default">
          <input type="number" min={1} value={replication} onInput={(event) => setReplication(event.currentTarget.value)} />
        </Field>
      </div>
      <Field label="Settings" wide hint={wrong === null ? "one name=value a line, such as retention.ms=86400000" : `“${wrong}” is no name=value`}>
        <textarea rows={3} class="mono" value={text} onInput={(event) => setText(event.currentTarget.value)} spellcheck={false} />
      </Field>
    </ChangeDialog>
  );
}
