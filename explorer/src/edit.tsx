/** A write: tried as a dry run first, then made. The server's refusals are at the lines that they are about. */

import { useEffect, useState } from "preact/hooks";
import { Refusal, ask, cluster, withQuery, type Json } from "./api";
import { Editor, type Remark, type Start } from "./editor";
import { fieldIn, lineOf } from "./fields";
import { Difference, Problem, cut } from "./parts";

const METHODS = {
  apply: { text: "apply (server side)", method: "PATCH", type: "application/apply-patch+yaml" },
  replace: { text: "replace", method: "PUT", type: "application/json" },
  merge: { text: "merge patch", method: "PATCH", type: "application/merge-patch+json" },
  strategic: { text: "strategic merge patch", method: "PATCH", type: "application/strategic-merge-patch+json" },
  json: { text: "JSON patch", method: "PATCH", type: "application/json-patch+json" },
} as const;
type Method = keyof typeof METHODS;

const OWN = "kubewright-explorer";

/** What each of them sends, in a sentence. */
const MEANS: Record<Method, string> = {
  apply: "The fields this manager wants to own. What it applied before and leaves out, it gives up.",
  replace: "The whole object takes the place of the one that is there.",
  merge: "What is written here is changed; null removes a field; lists are replaced.",
  strategic: "As a merge patch, but lists are merged by their keys (built-in kinds).",
  json: "A list of operations: add, remove, replace, move, copy, test.",
};

interface Tried {
  lines: Json[];
  warnings: string[];
  written: boolean;
}

export function Edit({ object, path, onWritten }: { object: Json; path: string; onWritten: (object: Json) => void }) {
  const [method, setMethod] = useState<Method>("apply");
  const [manager, setManager] = useState(OWN);
  const [owner, setOwner] = useState(OWN);
  const [force, setForce] = useState(false);
  const [validation, setValidation] = useState("Strict");
  const [start, setStart] = useState<Start>({ text: "" });
  const [text, setText] = useState("");
  const [remarks, setRemarks] = useState<Remark[]>([]);
  const [tried, setTried] = useState<Tried | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    let gone = false;
    setTried(null);
    setRemarks([]);
    setFault(null);
    startText(method, object, owner).then((first) => {
      if (gone) return;
      setStart({ text: first });
      setText(first);
    }, setFault);
    return () => {
      gone = true;
    };
  }, [method, owner]);
  // What was tried is what is written: after a change it has to be tried again.
  const change = <T,>(set: (value: T) => void) => (value: T) => {
    setTried(null);
    set(value);
  };

  const send = async (dryRun: boolean) => {
    setBusy(true);
    setFault(null);
    setRemarks([]);
    if (dryRun) setTried(null);
    let read: Json = {};
    try {
      read = await ask("read", { text });
      if (read.fault) {
        setRemarks([{ line: read.line, severity: "error", text: read.fault }]);
        return;
      }
      const { value, warnings } = await cluster(
        withQuery(path, {
          fieldManager: manager,
          fieldValidation: validation,
          force: method === "apply" && force ? "true" : undefined,
          dryRun: dryRun ? "All" : undefined,
        }),
        { method: METHODS[method].method, type: METHODS[method].type, body: JSON.stringify(read.value) },
      );
      const sent = method === "json" ? null : read.value;
      const { lines } = await ask("difference", { before: object, after: value, sent: sent ?? {}, manager });
      setTried({ lines, warnings, written: !dryRun });
      if (!dryRun) onWritten(value);
    } catch (caught) {
      if (caught instanceof Refusal && caught.causes.length) setRemarks(remarksOf(caught, read));
      setFault(caught);
    } finally {
      setBusy(false);
    }
  };

  return (
    <section class="edit" aria-label="Edit">
      <div class="filters">
        <label>
          How{" "}
          <select value={method} onChange={(event) => setMethod(event.currentTarget.value as Method)}>
            {Object.entries(METHODS).map(([name, each]) => (
              <option key={name} value={name}>
                {each.text}
              </option>
            ))}
          </select>
        </label>
        <label>
          Field manager{" "}
          <input
            value={manager}
            list="managers"
            onInput={(event) => change(setManager)(event.currentTarget.value)}
            onChange={(event) => setOwner(event.currentTarget.value)}
          />
          <datalist id="managers">
            {[...new Set<string>((object.metadata?.managedFields ?? []).map((each: Json) => String(each.manager)))].slice(0, 50).map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
        <label>
          Unknown fields{" "}
          <select value={validation} onChange={(event) => change(setValidation)(event.currentTarget.value)}>
            <option value="Strict">are refused</option>
            <option value="Warn">give a warning</option>
            <option value="Ignore">are ignored</option>
          </select>
        </label>
        {method === "apply" && (
          <label>
            <input type="checkbox" checked={force} onChange={() => change(setForce)(!force)} /> take fields over from others (force)
          </label>
        )}
        <button type="button" class="primary" disabled={busy} onClick={() => void send(true)}>
          Try it (dry run)
        </button>
        <button type="button" disabled={busy || !tried || tried.written} onClick={() => void send(false)}>
          Write it
        </button>
      </div>
      <p class="doc">
        {MEANS[method]} <kbd>Ctrl</kbd> <kbd>Enter</kbd> tries it.
      </p>
      <Editor start={start} label="The document to send, YAML" remarks={remarks} onText={change(setText)} onRun={() => void send(true)} />
      <Problem fault={fault} />
      {tried && (
        <>
          {tried.warnings.map((warning) => (
            <p key={warning} class="warning" role="status">
              {cut(warning)}
            </p>
          ))}
          <h3>{tried.written ? "Written" : "What the server would make of it"}</h3>
          <Difference lines={tried.lines} label="Difference" />
        </>
      )}
    </section>
  );
}

/** Causes of a conflict or a 422 at the lines of the document. */
function remarksOf(refusal: Refusal, read: Json): Remark[] {
  return refusal.causes.map((cause) => {
    const isConflict = cause.reason === "FieldManagerConflict";
    const field = isConflict ? fieldIn(cause.field ?? "", read.value) : (cause.field ?? "");
    return {
      line: lineOf(field, read.lines ?? {}),
      severity: isConflict ? "warning" : "error",
      text: `${cause.field ?? ""}: ${cut(cause.message ?? "")}`,
    };
  });
}

/** What an edit begins with: what the manager has applied so far, the object itself, or an empty patch. */
async function startText(method: Method, object: Json, manager: string): Promise<string> {
  if (method === "json") return `- {op: test, path: /metadata/name, value: ${JSON.stringify(object.metadata?.name)}}\n`;
  if (method === "apply") return (await ask("owned", { object, manager })).text;
  if (method === "replace") return (await ask("lines", { object })).lines.map((line: Json) => line.text).join("\n");
  return "metadata:\n  labels: {}\n";
}
