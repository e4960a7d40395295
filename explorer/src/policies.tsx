/** Admission policies, tried against the objects that are there before anybody binds them. */

import { useState } from "preact/hooks";
import { ask, cluster, withQuery, type Json } from "./api";
import { Editor, type Remark, type Start } from "./editor";
import { pathOf, type Kind } from "./kinds";
import { Problem, cut, useLoaded } from "./parts";

const VALIDATING = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: example
spec:
  validations:
  - expression: "has(object.metadata.labels)"
    message: an object needs labels
`;

const MUTATING = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: example
spec:
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{labels: Object.metadata.labels{team: "none"}}}
`;

const PLURALS = ["validatingadmissionpolicies", "mutatingadmissionpolicies"];
const MOST_OBJECTS = 500;
const named = (kind: Kind) => `${kind.plural}.${kind.group}`;
const nameOf = (each: Json) => cut(each.namespace ? `${each.namespace}/${each.name}` : each.name);

/** The policies that the cluster has, of both kinds; none of a kind that nobody may list. */
async function policiesOf(kinds: Kind[], signal: AbortSignal): Promise<Json[]> {
  const lists = kinds
    .filter((kind) => PLURALS.includes(kind.plural))
    .map(async (kind) => {
      const { value } = await cluster(pathOf(kind), { signal });
      return (value.items ?? []).map((each: Json) => ({ apiVersion: value.apiVersion, kind: kind.kind, ...each }));
    });
  const read = await Promise.allSettled(lists);
  return read.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
}

export function PolicyTrial({ kinds }: { kinds: Kind[] }) {
  const [start, setStart] = useState<Start>({ text: VALIDATING });
  const [text, setText] = useState(VALIDATING);
  const [kindName, setKindName] = useState("configmaps.");
  const [namespace, setNamespace] = useState("");
  const [operation, setOperation] = useState("CREATE");
  const [params, setParams] = useState({ name: "", namespace: "" });
  const [remarks, setRemarks] = useState<Remark[]>([]);
  const [answer, setAnswer] = useState<Json | null>(null);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const policies = useLoaded((signal) => policiesOf(kinds, signal), [kinds]);
  const show = (first: string) => {
    setStart({ text: first });
    setText(first);
  };
  const begin = (chosen: string) => {
    setAnswer(null);
    const policy = policies.value?.[Number(chosen)];
    if (chosen === "validating" || chosen === "mutating") show(chosen === "validating" ? VALIDATING : MUTATING);
    else if (policy) void ask("lines", { object: policy }).then((found) => show(found.lines.map((line: Json) => line.text).join("\n")), setFault);
  };
  const run = async () => {
    setBusy(true);
    setFault(null);
    setRemarks([]);
    setAnswer(null);
    try {
      const read = await ask("read", { text });
      if (read.fault) {
        setRemarks([{ line: read.line, severity: "error", text: read.fault }]);
        return;
      }
      const kind = kinds.find((each) => named(each) === kindName)!;
      const { value } = await cluster(withQuery(pathOf(kind, namespace), { limit: MOST_OBJECTS }));
      const type = { apiVersion: value.apiVersion, kind: kind.kind };
      const objects = (value.items ?? []).map((each: Json) => ({ ...type, ...each }));
      const resource = { group: kind.group, versions: kind.versions, resource: kind.plural };
      const tried = await ask("policy", { policy: read.value, objects, resource, operation, params });
      setAnswer({ ...tried, more: value.metadata?.remainingItemCount ?? (value.metadata?.continue ? "some" : 0) });
    } catch (caught) {
      setFault(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <article>
      <h1>Try a policy</h1>
      <p class="doc">
        A ValidatingAdmissionPolicy or MutatingAdmissionPolicy, judged against objects that are there, as if you created them now. Nothing is
        written, and the policy need not exist.
      </p>
      <div class="filters">
        <label>
          Begin with{" "}
          <select onChange={(event) => begin(event.currentTarget.value)}>
            <option value="validating">an example that validates</option>
            <option value="mutating">an example that mutates</option>
            {(policies.value ?? []).map((each: Json, index: number) => (
              <option key={index} value={index}>
                {cut(`${each.metadata.name} (${each.kind})`)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Objects{" "}
          <select class="narrow" value={kindName} onChange={(event) => setKindName(event.currentTarget.value)}>
            {kinds
              .filter((kind) => kind.verbs.includes("list"))
              .map((kind) => (
                <option key={named(kind)} value={named(kind)}>
                  {kind.kind} {kind.group}
                </option>
              ))}
          </select>
        </label>
        <label>
          Namespace <input value={namespace} placeholder="all" onInput={(event) => setNamespace(event.currentTarget.value)} />
        </label>
        <label>
          As{" "}
          <select value={operation} onChange={(event) => setOperation(event.currentTarget.value)}>
            <option value="CREATE">a create</option>
            <option value="UPDATE">an update</option>
          </select>
        </label>
        {text.includes("paramKind") && (
          <>
            <label>
              Params <input value={params.name} placeholder="name (all there are)" onInput={(event) => setParams({ ...params, name: event.currentTarget.value })} />
            </label>
            <label>
              in namespace{" "}
              <input value={params.namespace} placeholder="that of the object" onInput={(event) => setParams({ ...params, namespace: event.currentTarget.value })} />
            </label>
          </>
        )}
        <button type="button" class="primary" disabled={busy} onClick={() => void run()}>
          Try it
        </button>
      </div>
      <Editor start={start} label="The policy, YAML" remarks={remarks} onText={setText} onRun={() => void run()} />
      <Problem fault={fault ?? answer?.fault} />
      {answer && !answer.fault && <Outcomes answer={answer} />}
    </article>
  );
}

function Outcomes({ answer }: { answer: Json }) {
  const results: Json[] = answer.results;
  const counts = new Map<string, number>();
  for (const { outcome } of results) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return (
    <section aria-label="Outcomes">
      <p role="status" data-testid="outcomes">
        {results.length ? [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(", ") : "There are no such objects."}
        {answer.more ? `; ${answer.more} more were not tried` : ""}
      </p>
      {results.length > 0 && (
        <table data-testid="trial">
          <thead>
            <tr>
              <th scope="col">Object</th>
              <th scope="col">Outcome</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {results.map((each, index) => (
              <tr key={index} class={each.outcome === "not matched" ? "aside" : ""}>
                <td>{nameOf(each)}</td>
                <td class={["refused", "failed"].includes(each.outcome) ? "bad" : ""}>{each.outcome}</td>
                <td class="long">
                  {cut((each.messages ?? []).join("; "))}
                  {(each.changes ?? []).map((line: Json, at: number) => (
                    <div key={at} class={`line ${line.mark}`}>
                      <span class="sign">{line.mark === "added" ? "+" : "−"}</span>
                      <code>{cut(line.text.trim())}</code> <small>{cut(line.field)}</small>
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
