/** Play: CEL, who may do what and why. */

import { useEffect, useState } from "preact/hooks";
import { Refusal, ask, cluster, type Json } from "./api";
import type { Kind } from "./kinds";
import { Problem, cut, useLoaded } from "./parts";
import { go, type Route } from "./route";
import { rulesOf, schemaOf } from "./schema";

const PAUSE = 250;

/** What a path of a rule leads to in an object; the first item of lists. */
function valueAt(object: Json, path: string): unknown {
  let value: any = object;
  for (const part of path.replaceAll("[]", ".0").split(".").filter(Boolean)) value = value?.[part];
  return value;
}

/** An expression that somebody wrote, where it is from, and what `self` is to it. */
interface Rule {
  from: string;
  path: string;
  expression: string;
}

async function rulesOfSchema(kind: Kind): Promise<Rule[]> {
  const { root, schemas } = await schemaOf(kind);
  return rulesOf(root, schemas).map(({ path, rule }) => ({ from: path || ".", path, expression: rule.rule }));
}

const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/** The expressions of the policies about a kind; none where the cluster has no policies, or shows them to others only. */
async function rulesOfPolicies(kind: Kind, signal: AbortSignal): Promise<Rule[]> {
  const { value } = await cluster(POLICIES, { signal, quiet: true }).catch((fault) => {
    if (fault instanceof Refusal) return { value: {} as Json };
    throw fault;
  });
  const names = (those: string[] | undefined, own: string) => (those ?? []).some((each) => each === "*" || each === own);
  const isAbout = (rule: Json) => names(rule.apiGroups, kind.group) && names(rule.resources, kind.plural);
  const about = (value.items ?? []).filter((each: Json) => (each.spec?.matchConstraints?.resourceRules ?? []).some(isAbout));
  return about.flatMap(({ metadata, spec }: Json) =>
    [...(spec.matchConditions ?? []), ...(spec.validations ?? [])].map((each: Json) => ({
      from: `policy ${metadata.name}`,
      path: "",
      expression: String(each.expression),
    })),
  );
}

/** What a policy knows of the request, were the object updated. */
function requestOf(kind: Kind, object: Json): Json {
  const { group, version } = kind;
  const { name = "", namespace = "" } = object.metadata ?? {};
  return { operation: "UPDATE", name, namespace, kind: { group, version, kind: kind.kind }, resource: { group, version, resource: kind.plural }, dryRun: false };
}

export function Cel({ kind, object }: { kind: Kind; object: Json }) {
  const [expression, setExpression] = useState("has(self.spec)");
  const [path, setPath] = useState("");
  const [answer, setAnswer] = useState<Json | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const rules = useLoaded(async (signal) => {
    const read = await Promise.allSettled([rulesOfSchema(kind), rulesOfPolicies(kind, signal)]);
    return read.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  }, [kind]);
  useEffect(() => {
    const stopping = new AbortController();
    const timer = setTimeout(() => {
      const self = path ? valueAt(object, path) : object;
      // An object of a megabyte is sent once, whatever it is called.
      const asked = { expression, variables: { self, object: path ? object : null, request: requestOf(kind, object) }, same: { oldSelf: "self", oldObject: "object", ...(path ? {} : { object: "self" }) } };
      ask("cel", asked, stopping.signal).then(
        (value) => {
          setAnswer(value);
          setFault(null);
        },
        (caught) => !stopping.signal.aborted && setFault(caught),
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stopping.abort();
    };
  }, [expression, path, object, kind]);
  return (
    <section class="cel" aria-label="CEL">
      <p class="doc">
        <code>self</code> and <code>object</code> are this object, as in rules of schemas and in policies; <code>oldSelf</code> and <code>oldObject</code> are the same, <code>request</code> updates it.
        Policies with parameters, variables or an authorizer are tried under Policies.
      </p>
      {(rules.value?.length ?? 0) > 0 && (
        <label>
          Rules for this kind{" "}
          <select
            onChange={(event) => {
              const chosen = rules.value![Number(event.currentTarget.value)];
              if (!chosen) return;
              setExpression(chosen.expression);
              setPath(chosen.path);
            }}
          >
            <option value="">choose</option>
            {rules.value!.map(({ from, expression: text }, index) => (
              <option key={index} value={index}>
                {`${from}: ${text}`.slice(0, 120)}
              </option>
            ))}
          </select>
        </label>
      )}
      <label>
        <code>self</code> is <input value={path} placeholder=".spec (empty: the object)" onInput={(event) => setPath(event.currentTarget.value)} />
      </label>
      <label class="wide">
        Expression
        <textarea rows={3} spellcheck={false} value={expression} onInput={(event) => setExpression(event.currentTarget.value)} />
      </label>
      <Problem fault={fault} />
      {answer && <CelAnswer answer={answer} />}
    </section>
  );
}

function CelAnswer({ answer }: { answer: Json }) {
  if (answer.fault) return <pre class="problem" role="alert">{cut(answer.fault)}</pre>;
  return (
    <div role="status">
      <p>
        <strong data-testid="value" class={answer.error ? "bad" : ""}>
          {answer.error ? cut(answer.error) : cut(JSON.stringify(answer.value))}
        </strong>{" "}
        <span class="type">{answer.type}</span>{" "}
        <span class="doc">
          cost {answer.cost} of {Number(answer.limit).toLocaleString("en")}
        </span>
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col">Type</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {(answer.parts ?? []).map((part: Json, index: number) => (
            <tr key={index} class={part.count ? "" : "aside"}>
              <td>
                <code>{cut(part.text)}</code>
              </td>
              <td class="type">{part.type}</td>
              <td class="long">
                {part.count === 0 && "not evaluated"}
                {part.values.map((value: Json) => short(value.error ?? value.value)).join(", ")}
                {part.count > part.values.length && part.values.length > 0 && `, … (${part.count} times)`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A part's value in a line or two; the object itself is a part of most expressions. */
const LONGEST_PART = 160;
const short = (text: string) => (text.length > LONGEST_PART ? `${text.slice(0, LONGEST_PART)}…` : text);

const QUESTIONS: [string, string][] = [
  ["who-can", "Who can …?"],
  ["why", "Why can somebody …?"],
  ["what-can", "What can somebody do?"],
];

/** Roles and bindings: who, why, what. */
export function Access({ route }: { route: Route }) {
  const given = Object.fromEntries(route.query);
  const question = given.question || "who-can";
  const isAsked = question === "what-can" ? !!given.subject : !!given.resource && (question === "who-can" || !!given.subject);
  const { value, fault } = useLoaded(
    async (signal) => (isAsked ? ask("access", { ...given, question }, signal) : undefined),
    [JSON.stringify(given)],
  );
  const me = useLoaded(async () => {
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    return (await cluster(path, { method: "POST", type: "application/json", body: JSON.stringify(review), quiet: true })).value.status?.userInfo;
  }, []);
  const chains: Json[] = value?.chains ?? [];
  return (
    <article>
      <h1>Who can do what, and why</h1>
      {me.value && (
        <p class="doc">
          You are <code>{cut(String(me.value.username))}</code>, in {cut((me.value.groups ?? []).join(", ") || "no group")}.
        </p>
      )}
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          go(["play", "access"], Object.fromEntries([...new FormData(event.currentTarget as HTMLFormElement)].map(([name, text]) => [name, String(text)])));
        }}
      >
        <label>
          Question{" "}
          <select name="question" defaultValue={question} key={question}>
            {QUESTIONS.map(([name, text]) => (
              <option key={name} value={name} selected={name === question}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {(["subject", "verb", "resource", "group", "namespace", "name"] as const).map((name) => (
          <label key={name}>
            {name[0]!.toUpperCase() + name.slice(1)} <input name={name} defaultValue={given[name] ?? ""} placeholder={EXAMPLES[name]} />
          </label>
        ))}
        <button class="primary">Ask</button>
      </form>
      <Problem fault={fault} />
      {value && (
        <>
          <p role="status" data-testid="verdict">
            {question === "why" && (chains.length ? "Yes, by these rules:" : "No: no binding gives a rule that allows it. Members of system:masters can do everything without one.")}
            {question !== "why" && (chains.length === 1 ? "1 rule." : `${chains.length} rules.`)}
          </p>
          <table>
            <thead>
              <tr>
                <th scope="col">Subject</th>
                <th scope="col">Binding</th>
                <th scope="col">Role</th>
                <th scope="col">Rule</th>
              </tr>
            </thead>
            <tbody>
              {chains.slice(0, 500).map((chain, index) => (
                <tr key={index}>
                  <td>{cut(chain.subject)}</td>
                  <td>{cut(chain.binding)}</td>
                  <td>{cut(chain.role)}</td>
                  <td>
                    <code>{cut(chain.rule)}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {question === "why" && !chains.length && <p class="doc">Ask “Who can …?” with the same verb and resource to see which roles would.</p>}
        </>
      )}
    </article>
  );
}

const EXAMPLES = {
  subject: "user:jane, group:dev, sa:ns/name",
  verb: "get",
  resource: "pods/log",
  group: "apps",
  namespace: "all",
  name: "any",
};
