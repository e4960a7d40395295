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

/** Who: the user where the server knows him, and the field managers. */
const whoOf = (version: Version) => [version.user, version.managers.join(", ")].filter(Boolean).join(" as ");

const VERBS: Record<string, string> = { create: "created", update: "updated", patch: "updated", delete: "deleted" };

/** The writes of an audit log (JSON lines) to a kind, of one object where a name is given. */
function ofAuditLog(text: string, kind: Kind, namespace: string, name: string): Version[] {
  const out: Version[] = [];
  for (const line of text.split("\n")) {
    let event: Json;
    try {
      event = JSON.parse(line);
    } catch {
      continue;
    }
    const of: Json = event.objectRef ?? {};
    const change = VERBS[String(event.verb)];
    if (event.stage !== "ResponseComplete" || !change || (event.responseStatus?.code ?? 200) >= 300) continue;
    if (of.resource !== kind.plural || (of.apiGroup ?? "") !== kind.group || String(event.requestURI).includes("dryRun=")) continue;
    if ((name && of.name !== name) || (namespace && of.namespace !== namespace)) continue;
    const object = event.responseObject?.kind === "Status" ? undefined : event.responseObject;
    out.push({
      revision: object?.metadata?.resourceVersion ?? "",
      time: event.stageTimestamp ?? "",
      change,
      user: event.user?.username,
      managers: [String(event.userAgent ?? "").split("/")[0]!].filter(Boolean),
      namespace: of.namespace ?? "",
      name: of.name ?? "",
      object,
    });
  }
  return out;
}

function AuditFile(props: { kind: Kind; namespace: string; name: string; onVersions: (versions: Version[]) => void }) {
  const [said, setSaid] = useState("");
  const read = async (file: File | undefined) => {
    if (!file) return;
    const text = await file.text();
    const versions = ofAuditLog(text, props.kind, props.namespace, props.name);
    const isLog = text.includes('"objectRef"');
    setSaid(versions.length ? "" : isLog ? "Nothing in it is a write of this." : `${file.name} has no audit events: give a log of JSON lines.`);
    props.onVersions(versions);
  };
  return (
    <>
      <label>
        Add an audit log{" "}
        <input type="file" onChange={(event) => read(event.currentTarget.files?.[0]).catch((fault) => setSaid(String(fault)))} />
      </label>
      <span role="alert" class="bad">
        {cut(said)}
      </span>
    </>
  );
}

/** Versions of both, newest first, each once. */
function merged(versions: Version[], added: Version[]): Version[] {
  const known = new Set(versions.filter((each) => each.revision).map((each) => `${each.name} ${each.revision}`));
  const fresh = added.filter((each) => !each.revision || !known.has(`${each.name} ${each.revision}`));
  return [...fresh, ...versions].sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
}

/** The versions at a path, newest first. What the server keeps counts, and what was seen is put to it. */
async function read(path: string, query: Record<string, string>, signal: AbortSignal): Promise<Line> {
  const own = seen(path);
  try {
    const { value } = await cluster(withQuery(path, { ...query, limit: MOST }), { accept: HISTORY, signal });
    const versions: Version[] = value.entries ?? [];
    return { versions: merged(versions, own), kept: true, more: !!value.metadata?.continue };
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
  const { value: line, fault, again } = useLoaded((signal) => read(path, {}, signal), [path, isThere]);
  const [audited, setAudited] = useState<Version[]>([]);
  const [older, setOlder] = useState<number | null>(null);
  const [newer, setNewer] = useState<number | null>(null);
  if (fault) return <Problem fault={fault} />;
  if (!line) return <p>Reading what was…</p>;
  const versions = merged(line.versions, audited);
  const right = newer ?? 0;
  const left = older ?? Math.min(right + 1, versions.length - 1);
  return (
    <section class="time" aria-label="Time line">
      <Explained line={line} />
      <div class="filters">
        <button type="button" onClick={again}>
          Read again
        </button>
        <AuditFile kind={kind} namespace={namespace} name={name} onVersions={setAudited} />
      </div>
      {versions.length === 0 && <p class="doc">Nothing is known of its past yet: what changes from now on is listed here.</p>}
      {versions.length > 0 && (
        <div class="past">
          <div class="versions" tabIndex={0} role="region" aria-label="Versions, newest first">
            <table>
              <thead>
                <tr>
                  <th scope="col">From</th>
                  <th scope="col">To</th>
                  <th scope="col">When</th>
                  <th scope="col">What, by whom</th>
                </tr>
              </thead>
              <tbody>
                {versions.map((each, index) => (
                  <tr key={`${each.revision}/${index}`} class={index === left || index === right ? "chosen" : ""}>
                    <td>
                      <input type="radio" name="older" aria-label={`compare from version ${each.revision}`} checked={index === left} onChange={() => setOlder(index)} />
                    </td>
                    <td>
                      <input type="radio" name="newer" aria-label={`compare to version ${each.revision}`} checked={index === right} onChange={() => setNewer(index)} />
                    </td>
                    <td class="when">
                      <When time={each.time} />
                      <small>
                        {age(each.time)} ago{each.revision && `, version ${each.revision}`}
                      </small>
                    </td>
                    <td>
                      <b class={`change ${each.change.toLowerCase()}`}>{each.change.toLowerCase()}</b>
                      {!each.object && <small> (without the object)</small>}
                      <br />
                      {cut(whoOf(each))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div class="compared">
            <BringBack kind={kind} namespace={namespace} version={versions[right]} isThere={isThere} />
            <Compared before={versions[left]?.object} after={versions[right]?.object} />
          </div>
        </div>
      )}
    </section>
  );
}

/** A time as people read it: UTC, as everywhere on the page, with milliseconds where they are known. */
const When = ({ time }: { time: string }) => <time dateTime={time}>{time.replace("T", " ").replace("Z", "")}</time>;

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
  const [audited, setAudited] = useState<Version[]>([]);
  if (fault) return <Problem fault={fault} />;
  if (!line) return <p>Reading what was…</p>;
  const versions = merged(line.versions, audited);
  return (
    <section class="time" aria-label="Time line">
      <Explained line={line} />
      <div class="filters">
        <button type="button" onClick={again}>
          Read again
        </button>
        <AuditFile kind={kind} namespace={namespace} name="" onVersions={setAudited} />
        <output>{versions.length === 1 ? "1 change" : `${versions.length} changes`}</output>
      </div>
      <Virtual
        count={versions.length}
        row={28}
        label="Changes, newest first"
        className="table"
        render={(index) => {
          const each = versions[index]!;
          return (
            <div key={index} role="listitem" class="row" style={{ gridTemplateColumns: "minmax(10rem, 13rem) 5rem minmax(6rem, 2fr) minmax(6rem, 3fr)" }}>
              <When time={each.time} />
              <span class={`change ${each.change.toLowerCase()}`}>{each.change.toLowerCase()}</span>
              <a href={link(["object", groupPart(kind.group), kind.plural, each.namespace || "-", each.name], { tab: "time" })}>
                {cut(each.namespace ? `${each.namespace}/${each.name}` : each.name)}
              </a>
              <span title={cut(whoOf(each))}>{cut(whoOf(each))}</span>
            </div>
          );
        }}
      />
    </section>
  );
}
