/** Time: who changed what when. The server's own history where it keeps one, and what the page saw since it was opened. */

import { useState } from "preact/hooks";
import { Refusal, ask, cluster, withQuery, type Json } from "./api";
import { pathOf, type Kind } from "./kinds";
import { Difference, Problem, Virtual, age, cut, useLoaded } from "./parts";
import { go, groupPart, link } from "./route";
import { seen, type Version } from "./seen";

export const HISTORY = "application/json;as=History;g=kubewright.dev;v=v1";
const MOST = 200;
const OF_SERVER = ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink"];

interface Line {
  versions: Version[];
  kept: boolean;
  more: boolean;
}

/** The versions at a path, newest first. What the server keeps counts, and what was seen is put to it. */
async function read(path: string, query: Record<string, string>, signal: AbortSignal): Promise<Line> {
  const own = seen(path);
  try {
    const { value } = await cluster(withQuery(path, { ...query, limit: MOST }), { accept: HISTORY, signal });
    const versions: Version[] = value.entries ?? [];
    const known = new Set(versions.map((each) => `${each.name} ${each.revision}`));
    const added = own.filter((each) => !known.has(`${each.name} ${each.revision}`));
    const all = [...added, ...versions].sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
    return { versions: all, kept: true, more: !!value.metadata?.continue };
  } catch (fault) {
    // Other servers know no such form: 406 says so, and so does 404 of an object that is gone.
    if (fault instanceof Refusal && (fault.code === 406 || fault.code === 404)) return { versions: own, kept: false, more: false };
    throw fault;
  }
}

function Explained({ line }: { line: Line }) {
  return (
    <p class="doc">
      {line.kept
        ? `Kept by the server${line.more ? `; the newest ${MOST} are shown` : ""}.`
        : "This server keeps no history (serve --keep-history does): what the page has seen since it was opened."}
    </p>
  );
}

/** The time line of one object: two versions compared, one shown as it was, a deleted one brought back. */
export function ObjectTime({ kind, namespace, name, isThere }: { kind: Kind; namespace: string; name: string; isThere: boolean }) {
  const path = pathOf(kind, namespace, name);
  const { value: line, fault, again } = useLoaded((signal) => read(path, {}, signal), [path]);
  const [older, setOlder] = useState<number | null>(null);
  const [newer, setNewer] = useState<number | null>(null);
  if (fault) return <Problem fault={fault} />;
  if (!line) return <p>Reading what was…</p>;
  const versions = line.versions;
  const right = newer ?? 0;
  const left = older ?? Math.min(right + 1, versions.length - 1);
  return (
    <section class="time" aria-label="Time line">
      <Explained line={line} />
      <button type="button" onClick={again}>
        Read again
      </button>
      {versions.length === 0 && <p>Nothing yet.</p>}
      {versions.length > 0 && (
        <>
          <table>
            <thead>
              <tr>
                <th scope="col">Older</th>
                <th scope="col">Newer</th>
                <th scope="col">When</th>
                <th scope="col">What</th>
                <th scope="col">Who</th>
                <th scope="col">Version</th>
              </tr>
            </thead>
            <tbody>
              {versions.map((each, index) => (
                <tr key={`${each.revision}/${index}`}>
                  <td>
                    <input type="radio" name="older" aria-label={`compare from version ${each.revision}`} checked={index === left} onChange={() => setOlder(index)} />
                  </td>
                  <td>
                    <input type="radio" name="newer" aria-label={`compare to version ${each.revision}`} checked={index === right} onChange={() => setNewer(index)} />
                  </td>
                  <td>
                    <time dateTime={each.time}>{each.time}</time> ({age(each.time)} ago)
                  </td>
                  <td>{each.change.toLowerCase()}</td>
                  <td>{cut(each.managers.join(", "))}</td>
                  <td>{each.revision}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <Compared before={versions[left]?.object} after={versions[right]?.object} />
          <BringBack kind={kind} namespace={namespace} version={versions[right]} isThere={isThere} />
        </>
      )}
    </section>
  );
}

function Compared({ before, after }: { before?: Json; after?: Json }) {
  const { value, fault } = useLoaded((signal) => ask("difference", { before, after }, signal), [before, after]);
  if (fault) return <Problem fault={fault} />;
  return value ? <Difference lines={value.lines} label="Difference of two versions" /> : null;
}

function BringBack(props: { kind: Kind; namespace: string; version?: Version; isThere: boolean }) {
  const [fault, setFault] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const object = props.version?.object;
  if (!object) return null;
  const create = async () => {
    setBusy(true);
    setFault(null);
    try {
      await cluster(withQuery(pathOf(props.kind, props.namespace), { fieldManager: "kubewright-explorer" }), {
        method: "POST",
        type: "application/json",
        body: JSON.stringify(asNew(object)),
      });
      go(["object", groupPart(props.kind.group), props.kind.plural, props.namespace || "-", object.metadata.name], { tab: "owners", back: String(Date.now()) });
    } catch (caught) {
      setFault(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div>
      <button type="button" disabled={props.isThere || busy} onClick={() => void create()}>
        Create it again as it was at version {props.version!.revision}
      </button>
      {props.isThere && <small> (only once it is deleted)</small>}
      <Problem fault={fault} />
    </div>
  );
}

/** An object without what only the server writes, so that a normal create takes it. */
export function asNew(object: Json): Json {
  const metadata = Object.fromEntries(Object.entries(object.metadata ?? {}).filter(([name]) => !OF_SERVER.includes(name)));
  const { status: _, ...rest } = object;
  return { ...rest, metadata };
}

/** The time line of a namespace or a selection. */
export function KindTime({ kind, namespace, labels }: { kind: Kind; namespace: string; labels: string }) {
  const path = pathOf(kind, namespace);
  const { value: line, fault, again } = useLoaded((signal) => read(path, { labelSelector: labels }, signal), [path, labels]);
  if (fault) return <Problem fault={fault} />;
  if (!line) return <p>Reading what was…</p>;
  return (
    <section class="time" aria-label="Time line">
      <Explained line={line} />
      <button type="button" onClick={again}>
        Read again
      </button>
      <Virtual
        count={line.versions.length}
        row={28}
        label="Changes, newest first"
        className="table"
        render={(index) => {
          const each = line.versions[index]!;
          return (
            <div key={index} role="listitem" class="row" style={{ gridTemplateColumns: "14rem 6rem 2fr 2fr" }}>
              <time dateTime={each.time}>{each.time}</time>
              <span>{each.change.toLowerCase()}</span>
              <a href={link(["object", groupPart(kind.group), kind.plural, each.namespace || "-", each.name], { tab: "time" })}>
                {cut(each.namespace ? `${each.namespace}/${each.name}` : each.name)}
              </a>
              <span>{cut(each.managers.join(", "))}</span>
            </div>
          );
        }}
      />
    </section>
  );
}
