/** Plans of moves: brokers balanced, one drained, another replication factor; and how they are stopped. */

import { useState } from "preact/hooks";
import { inCluster } from "../lib/api";
import { brokersOf, countOf, rateOf } from "../lib/moves";
import { Field } from "../ui/basics";
import { ChangeDialog } from "../ui/change";

export type MoveKind = "rebalance" | "drain" | "factor" | "stop" | "cancel" | "clear";

interface Props {
  readonly cluster: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function MoveChange({ kind, ...props }: Props & { kind: MoveKind }) {
  switch (kind) {
    case "rebalance":
      return <Rebalance {...props} />;
    case "drain":
      return <Drain {...props} />;
    case "factor":
      return <Factor {...props} />;
    case "stop":
      return <ChangeDialog title="Stop the plan" path={inCluster(props.cluster, ["moves", "stop"])} body={{}} verb="Begin no more" onClose={props.onClose} onDone={props.onDone} />;
    case "cancel":
      return <ChangeDialog title="Cancel what moves" path={inCluster(props.cluster, ["moves", "cancel"])} body={{}} verb="Cancel the moves" danger wide onClose={props.onClose} onDone={props.onDone} />;
    case "clear":
      return <ChangeDialog title="Take limits away" path={inCluster(props.cluster, ["moves", "clear"])} body={{}} verb="Take them away" onClose={props.onClose} onDone={props.onDone} />;
  }
}

/** The pace of moves: its fields, and its part of the body; null while it is incomplete. */
function usePace() {
  const [rate, setRate] = useState("50M");
  const [together, setTogether] = useState("10");
  const throttle = rateOf(rate);
  const concurrent = countOf(together, 1, 1000);
  const body = throttle === undefined || concurrent === undefined ? null : { throttle, concurrent };
  const form = (
    <div class="row">
      <Field label="Limit of each broker, bytes per second" hint="50M; empty: no limit">
        <input value={rate} onInput={(event) => setRate(event.currentTarget.value)} spellcheck={false} />
      </Field>
      <Field label="Partitions at a time">
        <input inputMode="numeric" value={together} onInput={(event) => setTogether(event.currentTarget.value)} />
      </Field>
    </div>
  );
  return { body, form };
}

function Rebalance({ cluster, onClose, onDone }: Props) {
  const pace = usePace();
  const [text, setText] = useState("");
  const [apart, setApart] = useState("10");
  const brokers = brokersOf(text);
  const tolerance = countOf(apart, 0, 100);
  const body = pace.body === null || brokers === undefined || tolerance === undefined ? null : { brokers, tolerance, ...pace.body };
  return (
    <ChangeDialog title="Balance the brokers" path={inCluster(cluster, ["moves", "rebalance"])} body={body} verb="Move the replicas" wide onClose={onClose} onDone={onDone}>
      <div class="row">
        <Field label="Brokers" hint="empty: all that are up and not drained">
          <input value={text} placeholder="1,2,3" onInput={(event) => setText(event.currentTarget.value)} spellcheck={false} />
        </Field>
        <Field label="Percent that bytes may stay apart">
          <input inputMode="numeric" value={apart} onInput={(event) => setApart(event.currentTarget.value)} />
        </Field>
      </div>
      {pace.form}
    </ChangeDialog>
  );
}

function Drain({ cluster, onClose, onDone }: Props) {
  const pace = usePace();
  const [text, setText] = useState("");
  const broker = countOf(text, 0, 2_147_483_647);
  const body = pace.body === null || broker === undefined ? null : { broker, ...pace.body };
  return (
    <ChangeDialog title="Drain a broker" path={inCluster(cluster, ["moves", "drain"])} body={body} verb="Drain it" danger wide onClose={onClose} onDone={onDone}>
      <Field label="Broker" hint="all its replicas move to others, and it gets no new ones">
        <input inputMode="numeric" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      {pace.form}
    </ChangeDialog>
  );
}

function Factor({ cluster, onClose, onDone }: Props) {
  const pace = usePace();
  const [topic, setTopic] = useState("");
  const [text, setText] = useState("3");
  const replication = countOf(text, 1, 32_767);
  const body = pace.body === null || topic === "" || replication === undefined ? null : { topic, replication, ...pace.body };
  return (
    <ChangeDialog title="Change a replication factor" path={inCluster(cluster, ["moves", "factor"])} body={body} verb="Move the replicas" wide onClose={onClose} onDone={onDone}>
      <div class="row">
        <Field label="Topic">
          <input value={topic} onInput={(event) => setTopic(event.currentTarget.value)} spellcheck={false} autocomplete="off" />
        </Field>
        <Field label="Replicas of each partition">
          <input inputMode="numeric" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </Field>
      </div>
      {pace.form}
    </ChangeDialog>
  );
}
