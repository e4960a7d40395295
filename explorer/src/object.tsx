/** One object: who owns it, edits, its time, other versions, CEL against it. */

import { useEffect, useState } from "preact/hooks";
import { Refusal, cluster, stream, withQuery, type Json } from "./api";
import { Edit } from "./edit";
import { pathOf, type Kind } from "./kinds";
import { Form } from "./form";
import { Owners } from "./owners";
import { Problem, Tabs, cut } from "./parts";
import { Cel } from "./play";
import { groupPart, link, type Route } from "./route";
import { remember } from "./seen";
import { ObjectTime } from "./time";
import { ObjectVersions } from "./versions";
import { seenAgain, whileSeen } from "./visible";

const TABS: [string, string][] = [
  ["owners", "Owners"],
  ["edit", "Edit"],
  ["form", "Form"],
  ["time", "Time"],
  ["versions", "Versions"],
  ["cel", "CEL"],
];

export function ObjectPage({ kind, namespace, name, route }: { kind: Kind; namespace: string; name: string; route: Route }) {
  const tab = route.query.get("tab") ?? "owners";
  const path = pathOf(kind, namespace, name);
  const { object, fault, setObject } = useObject(kind, namespace, name, route.query.get("back") ?? "");
  const parts = ["object", groupPart(kind.group), kind.plural, namespace || "-", name];
  return (
    <article>
      <h1>
        <span class="kind">
          <a href={link(["kind", groupPart(kind.group), kind.plural], { ns: namespace })}>{kind.kind}</a>
        </span>{" "}
        {cut(namespace ? `${namespace}/${name}` : name)}
      </h1>
      <Tabs tabs={TABS} current={tab} label="Views of the object" to={(each) => link(parts, { tab: each })} />
      {fault !== undefined && <Problem fault={fault} />}
      {tab === "time" && <ObjectTime kind={kind} namespace={namespace} name={name} revision={object?.metadata?.resourceVersion ?? ""} at={route.query.get("at") ?? ""} />}
      {object && tab === "owners" && <Owners object={object} />}
      {object && tab === "edit" && <Edit key={object.metadata?.uid} object={object} path={path} onWritten={setObject} />}
      {object && tab === "form" && <Form key={object.metadata?.uid} kind={kind} object={object} path={path} onWritten={setObject} />}
      {object && tab === "versions" && <ObjectVersions kind={kind} namespace={namespace} name={name} revision={object.metadata?.resourceVersion ?? ""} />}
      {object && tab === "cel" && <Cel kind={kind} object={object} />}
    </article>
  );
}

/** The object, kept up to date by a watch of it alone. */
function useObject(kind: Kind, namespace: string, name: string, turn: string) {
  const [object, setObject] = useState<Json>();
  const [fault, setFault] = useState<unknown>();
  useEffect(() => {
    const stopping = new AbortController();
    setObject(undefined);
    setFault(undefined);
    void keep(kind, namespace, name, stopping.signal, setObject, setFault);
    return () => stopping.abort();
  }, [kind, namespace, name, turn]);
  return { object, fault, setObject };
}

async function keep(
  kind: Kind,
  namespace: string,
  name: string,
  signal: AbortSignal,
  take: (object: Json | undefined) => void,
  fail: (fault: unknown) => void,
): Promise<void> {
  const path = pathOf(kind, namespace, name);
  let pause = 500;
  while (!signal.aborted) {
    await seenAgain(signal);
    const watching = whileSeen(signal);
    try {
      const { value } = await cluster(path, { signal, quiet: pause > 500 });
      fail(undefined);
      take(value);
      remember(kind, "SEEN", value.metadata ?? {}, value);
      if (!kind.verbs.includes("watch")) return;
      const query = { watch: "true", fieldSelector: `metadata.name=${name}`, resourceVersion: value.metadata?.resourceVersion };
      for await (const event of stream(withQuery(pathOf(kind, namespace), query), "application/json", watching.signal)) {
        if (event.type === "ERROR") break;
        pause = 500;
        remember(kind, event.type, event.object.metadata ?? {}, event.object);
        if (event.type === "DELETED") {
          take(undefined);
          fail(new Error("It was deleted; Time has it as it was."));
        } else {
          fail(undefined);
          take(event.object);
        }
      }
    } catch (caught) {
      if (signal.aborted) return;
      if (watching.signal.aborted) continue;
      fail(caught);
      if (caught instanceof Refusal && caught.code !== 410 && caught.code < 500 && caught.code !== 429) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 15_000);
    } finally {
      watching.release();
    }
  }
}
