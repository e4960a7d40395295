/** The time of one object: two versions compared, an object as it was, a deleted one brought back. */

import { useState } from "preact/hooks";
import { ask, cluster, withQuery, type Json } from "./api";
import { pathOf, type Kind } from "./kinds";
import { Difference, Problem, age, cut, useLoaded } from "./parts";
import { whoOf } from "./past";
import { go, groupPart } from "./route";
import type { Version } from "./seen";
import { AuditFile, Explained, Older, When, useTimeLine } from "./timeline";

export const OF_SERVER = ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink"];

/** The time line of one object: two versions compared, one shown as it was, a deleted one brought back. */
export function ObjectTime(props: { kind: Kind; namespace: string; name: string; revision: string; at: string }) {
  const { kind, namespace, name } = props;
  const line = useTimeLine({ kinds: [kind], namespace, name, labels: "" }, props.revision);
  const [older, setOlder] = useState<number | null>(null);
  const [newer, setNewer] = useState<number | null>(null);
  if (line.fault !== undefined) return <Problem fault={line.fault} />;
  if (!line.versions) return <p>Reading what was…</p>;
  const versions = line.versions;
  const meant = versions.findIndex((each) => each.revision === props.at);
  const right = newer ?? Math.max(0, meant);
  const left = older ?? Math.min(right + 1, versions.length - 1);
  return (
    <section class="time" aria-label="Time line">
      <Explained line={line} />
      <div class="filters">
        <button type="button" onClick={line.again}>
          Read again
        </button>
        <Older line={line} />
        <AuditFile line={line} />
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
            <BringBack kind={kind} namespace={namespace} version={versions[right]} isThere={!!props.revision} />
            <Compared before={versions[left]?.object} after={versions[right]?.object} />
          </div>
        </div>
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
