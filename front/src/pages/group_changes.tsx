/** Offsets of a group moved or removed, and the group itself. */

import { useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import type { Group } from "../lib/contract";
import { toSection } from "../lib/links";
import { go } from "../lib/location";
import { placesOf, placeValue, type Place } from "../lib/meaning";
import { fromField, partitionsOf, toField } from "../lib/search";
import { Field } from "../ui/basics";
import { ChangeDialog } from "../ui/change";
import { groupName } from "./groups";

export type Kind = "reset" | "forget" | "delete";

interface Props {
  readonly cluster: string;
  readonly group: Group;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function GroupChange({ kind, ...props }: Props & { kind: Kind }) {
  switch (kind) {
    case "reset":
      return <Reset {...props} />;
    case "forget":
      return <Forget {...props} />;
    case "delete":
      return <Delete {...props} />;
  }
}

const topicsOf = (group: Group): string[] => [...new Set(group.offsets.map((row) => row.topic))].sort();

function Reset({ cluster, group, onClose, onDone }: Props) {
  const [place, setPlace] = useState<Place>("earliest");
  const [text, setText] = useState("");
  const [topic, setTopic] = useState("");
  const [partitions, setPartitions] = useState("");
  const value = placeValue(place, text);
  const chosen = partitionsOf(partitions).map(Number);
  const topics = topic === "" ? null : [{ topic, partitions: chosen.length === 0 ? null : chosen }];
  const body = value === undefined ? null : { id: group.id, to: { kind: place, value }, topics };
  return (
    <ChangeDialog title={`Move offsets of ${groupName(group.id)}`} path={inCluster(cluster, ["group", "reset"])} body={body} verb="Move the offsets" danger wide onClose={onClose} onDone={onDone}>
      {group.members.length > 0 && (
        <p class="box warning">
          The group has {group.members.length === 1 ? "a member" : `${group.members.length} members`} that would commit over it, so offsets can be moved only when all are stopped. The preview works now.
        </p>
      )}
      <div class="row">
        <Field label="To">
          <select
            value={place}
            onChange={(event) => {
              setPlace(event.currentTarget.value as Place);
              setText("");
            }}
          >
            {placesOf(group.type).map(([id, title]) => (
              <option key={id} value={id} selected={id === place}>
                {title}
              </option>
            ))}
          </select>
        </Field>
        {place === "time" && (
          <Field label="Local time" hint="the first record at or after it">
            <input type="datetime-local" step={1} value={toField(text)} onChange={(event) => setText(fromField(event.currentTarget.value))} />
          </Field>
        )}
        {place === "offset" && (
          <Field label="Offset">
            <input inputMode="numeric" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </Field>
        )}
        {place === "shift" && (
          <Field label="Records" hint="negative: read again; 1: skip one">
            <input value={text} placeholder="-100" onInput={(event) => setText(event.currentTarget.value)} />
          </Field>
        )}
      </div>
      <div class="row">
        <Field label="Topic">
          <select value={topic} onChange={(event) => setTopic(event.currentTarget.value)}>
            <option value="">all {topicsOf(group).length}</option>
            {topicsOf(group).map((each) => (
              <option key={each} value={each} selected={each === topic}>
                {each}
              </option>
            ))}
          </select>
        </Field>
        {topic !== "" && (
          <Field label="Partitions" hint="empty: all">
            <input value={partitions} placeholder="0,2,5-7" onInput={(event) => setPartitions(event.currentTarget.value)} />
          </Field>
        )}
      </div>
    </ChangeDialog>
  );
}

function Forget({ cluster, group, onClose, onDone }: Props) {
  const topics = topicsOf(group);
  const [topic, setTopic] = useState(topics[0] ?? "");
  return (
    <ChangeDialog
      title={`Remove offsets of ${groupName(group.id)}`}
      path={inCluster(cluster, ["group", "forget"])}
      body={topic === "" ? null : { id: group.id, topic }}
      verb="Remove the offsets"
      danger
      onClose={onClose}
      onDone={onDone}
    >
      <Field label="Topic">
        <select value={topic} onChange={(event) => setTopic(event.currentTarget.value)}>
          {topics.map((each) => (
            <option key={each} value={each} selected={each === topic}>
              {each}
            </option>
          ))}
        </select>
      </Field>
    </ChangeDialog>
  );
}

function Delete({ cluster, group, onClose }: Props) {
  const [done, setDone] = useState(false);
  return (
    <ChangeDialog
      title={`Delete group ${groupName(group.id)}`}
      path={inCluster(cluster, ["group", "delete"])}
      body={{ id: group.id }}
      verb="Delete the group"
      danger
      onClose={() => (done ? go(toSection(cluster, "groups")) : onClose())}
      onDone={() => setDone(true)}
    />
  );
}
