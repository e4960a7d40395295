/** A kind's schema as an outline: types, defaults, rules and what is required, out of OpenAPI v3. */

import { useState } from "preact/hooks";
import { ask, cluster, type Json } from "./api";
import { apiVersion, pathOf, type Kind } from "./kinds";
import { Problem, cut, useLoaded } from "./parts";

interface Document {
  schemas: Json;
  root: Json;
  verbs: string[];
}

const documents = new Map<string, Promise<Json>>();

/** The OpenAPI document of a group-version, read once. */
function documentOf(kind: Kind, version: string): Promise<Json> {
  const path = kind.group ? `/openapi/v3/apis/${kind.group}/${version}` : `/openapi/v3/api/${version}`;
  let found = documents.get(path);
  if (!found) {
    found = cluster(path).then(async ({ value }) => {
      await describe(value.components?.schemas ?? {}).catch(() => undefined);
      return value;
    });
    found.catch(() => documents.delete(path));
    documents.set(path, found);
  }
  return found;
}

let release: Promise<string> | undefined;

/** Adds the descriptions of Kubernetes' own definitions where the server gives none. */
async function describe(schemas: Json): Promise<void> {
  const bare = Object.keys(schemas).filter((name) => name.startsWith("io.k8s.") && !schemas[name].description);
  if (!bare.length) return;
  release ??= cluster("/version", { quiet: true }).then(
    ({ value }) => `${value.major}.${Number.parseInt(value.minor, 10)}`,
    () => "",
  );
  const { descriptions } = await ask("descriptions", { release: await release, definitions: bare });
  for (const [name, texts] of Object.entries<Record<string, string>>(descriptions)) {
    const schema = schemas[name];
    schema.description = texts[""];
    for (const [field, below] of Object.entries<Json>(schema.properties ?? {})) below.description ??= texts[field];
  }
}

export async function schemaOf(kind: Kind, version = kind.version): Promise<Document> {
  const document = await documentOf(kind, version);
  const schemas: Json = document.components?.schemas ?? {};
  const root = Object.values(schemas).find((each: any) =>
    (each["x-kubernetes-group-version-kind"] ?? []).some(
      (gvk: Json) => gvk.kind === kind.kind && gvk.version === version && (gvk.group ?? "") === kind.group,
    ),
  ) as Json | undefined;
  const own = pathOf(kind, "", "", version);
  const paths = Object.entries(document.paths ?? {}).filter(([path]) => `${path.replace("/namespaces/{namespace}/", "/")}/`.startsWith(`${own}/`));
  const verbs = paths.flatMap(([path, item]) =>
    Object.keys(item as Json)
      .filter((method) => ["get", "put", "post", "patch", "delete"].includes(method))
      .map((method) => `${method.toUpperCase()} ${path}`),
  );
  return { schemas, root: root ?? {}, verbs };
}

/** A schema with its reference followed; what stands beside the reference wins. */
export function resolved(schema: Json, schemas: Json): Json {
  const reference = schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0].$ref : undefined);
  if (!reference) return schema;
  return { ...(schemas[String(reference).split("/").pop()!] ?? {}), ...schema, $ref: undefined, allOf: undefined };
}

export function typeOf(schema: Json, schemas: Json): string {
  const whole = resolved(schema, schemas);
  if (whole["x-kubernetes-int-or-string"] || whole.format === "int-or-string") return "int or string";
  if (whole.type === "array") return `list of ${typeOf(whole.items ?? {}, schemas)}`;
  if (whole.additionalProperties) return `map of ${typeOf(whole.additionalProperties, schemas)}`;
  return whole.format ? `${whole.type} (${whole.format})` : (whole.type ?? "anything");
}

/** The rules of a schema and of what is below it, with their paths. */
export function rulesOf(schema: Json, schemas: Json, path = "", depth = 0, out: { path: string; rule: Json }[] = []) {
  if (depth > 12 || out.length > 200) return out;
  const whole = resolved(schema, schemas);
  for (const rule of whole["x-kubernetes-validations"] ?? []) out.push({ path, rule });
  for (const [name, below] of Object.entries(whole.properties ?? {})) rulesOf(below as Json, schemas, `${path}.${name}`, depth + 1, out);
  if (whole.items) rulesOf(whole.items, schemas, `${path}[]`, depth + 1, out);
  return out;
}

export function Schema({ kind, version }: { kind: Kind; version: string }) {
  const { value, fault } = useLoaded(() => schemaOf(kind, version), [kind, version]);
  const [search, setSearch] = useState("");
  if (fault) return <Problem fault={fault} />;
  if (!value) return <p>Reading the schema…</p>;
  return (
    <section class="schema" aria-label={`Schema of ${kind.kind}`}>
      <p class="doc">{value.root.description}</p>
      <label>
        Fields with <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <Fields schema={value.root} schemas={value.schemas} search={search.toLowerCase()} depth={0} />
      <details>
        <summary>What reads and writes it</summary>
        <ul>
          {value.verbs.map((verb) => (
            <li key={verb}>
              <code>{verb}</code>
            </li>
          ))}
        </ul>
      </details>
      <Sample kind={kind} version={version} document={value} />
    </section>
  );
}

function Fields(props: { schema: Json; schemas: Json; search: string; depth: number }) {
  const whole = inner(props.schema, props.schemas);
  const required = new Set<string>(whole.required ?? []);
  const names = Object.keys(whole.properties ?? {}).sort();
  return (
    <ul class="fields">
      {names.map((name) => (
        <Field
          key={name}
          name={name}
          schema={whole.properties[name]}
          schemas={props.schemas}
          required={required.has(name)}
          search={props.search}
          depth={props.depth}
        />
      ))}
    </ul>
  );
}

/** Default, bounds and how lists merge. */
export function factsOf(whole: Json): string[] {
  const facts: string[] = [];
  // OpenAPI documents of built-in kinds give every struct the default {}, which says nothing.
  if (whole.default !== undefined && JSON.stringify(whole.default) !== "{}") facts.push(`default ${cut(JSON.stringify(whole.default))}`);
  for (const name of ["enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"])
    if (whole[name] !== undefined) facts.push(`${name} ${cut(JSON.stringify(whole[name]))}`);
  const list = whole["x-kubernetes-list-type"];
  if (list) facts.push(`${list} list${whole["x-kubernetes-list-map-keys"] ? ` by ${whole["x-kubernetes-list-map-keys"].join(", ")}` : ""}`);
  if (whole["x-kubernetes-map-type"]) facts.push(`${whole["x-kubernetes-map-type"]} map`);
  return facts;
}

/** The schema that has the fields: that of a list's items, of a map's values. */
export function inner(schema: Json, schemas: Json): Json {
  let whole = resolved(schema, schemas);
  for (let depth = 0; depth < 5 && !whole.properties && (whole.items || whole.additionalProperties); depth++)
    whole = resolved(whole.items ?? whole.additionalProperties, schemas);
  return whole;
}

const means = (name: string, schema: Json, search: string) => `${name} ${schema.description ?? ""}`.toLowerCase().includes(search);

const DEEPEST_SEARCH = 8;

/** Whether a search means a field below; schemas that hold themselves end at a depth. */
function hasBelow(schema: Json, schemas: Json, search: string, depth = 0, done = new Set<Json>()): boolean {
  const properties: Json | undefined = inner(schema, schemas).properties;
  if (!properties || depth > DEEPEST_SEARCH || done.has(properties)) return false;
  done.add(properties);
  return Object.entries(properties).some(([name, below]) => {
    const whole = resolved(below, schemas);
    return means(name, whole, search) || hasBelow(whole, schemas, search, depth + 1, done);
  });
}

function Field(props: { name: string; schema: Json; schemas: Json; required: boolean; search: string; depth: number }) {
  const [chosen, setOpen] = useState<boolean>();
  const whole = resolved(props.schema, props.schemas);
  const hasFields = !!inner(props.schema, props.schemas).properties;
  const isMeant = !props.search || means(props.name, whole, props.search);
  const isBelow = !!props.search && hasFields && hasBelow(props.schema, props.schemas, props.search);
  if (!isMeant && !isBelow) return null;
  const open = chosen ?? (isBelow || (props.depth === 0 && props.name === "spec"));
  const facts = factsOf(whole);
  return (
    <li class={isMeant ? "" : "aside"}>
      <div class="field">
        {hasFields ? (
          <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "▾" : "▸"} {props.name}
          </button>
        ) : (
          <span class="leaf">{props.name}</span>
        )}
        <span class="type">{typeOf(props.schema, props.schemas)}</span>
        {props.required && <span class="required">required</span>}
        {facts.map((fact) => (
          <span key={fact} class="fact">
            {fact}
          </span>
        ))}
      </div>
      {whole.description && <p class="doc">{cut(whole.description)}</p>}
      {(whole["x-kubernetes-validations"] ?? []).map((rule: Json) => (
        <p key={rule.rule} class="rule">
          <code>{cut(rule.rule)}</code> {rule.message}
        </p>
      ))}
      {open && <Fields {...props} depth={props.depth + 1} />}
    </li>
  );
}

/** The least that a schema asks for. */
export function sample(schema: Json, schemas: Json, depth = 0): unknown {
  const whole = resolved(schema, schemas);
  if (whole.default !== undefined && JSON.stringify(whole.default) !== "{}") return whole.default;
  if (whole.enum?.length) return whole.enum[0];
  if (whole.type === "array") return depth < 6 ? [sample(whole.items ?? {}, schemas, depth + 1)] : [];
  if (whole.properties && depth < 6) {
    const names: string[] = (whole.required ?? []).filter((name: string) => whole.properties[name]);
    return Object.fromEntries(names.map((name) => [name, sample(whole.properties[name], schemas, depth + 1)]));
  }
  // Quantities are a string or a number, ports a number or a name.
  const type = whole.type ?? (whole["x-kubernetes-int-or-string"] ? "integer" : whole.oneOf?.[0]?.type);
  return { string: "", integer: whole.minimum ?? 0, number: 0, boolean: false }[String(type)] ?? {};
}

export function sampleOf(kind: Kind, version: string, document: Document): Json {
  const spec = document.root.properties?.spec;
  return {
    apiVersion: apiVersion(kind, version),
    kind: kind.kind,
    metadata: kind.namespaced ? { name: "example", namespace: "default" } : { name: "example" },
    ...(spec ? { spec: sample(spec, document.schemas) } : {}),
  };
}

function Sample({ kind, version, document }: { kind: Kind; version: string; document: Document }) {
  const { value } = useLoaded((signal) => ask("lines", { object: sampleOf(kind, version, document) }, signal), [document]);
  const text = (value?.lines ?? []).map((line: Json) => line.text).join("\n");
  return (
    <details>
      <summary>A sample: the least that the schema asks for</summary>
      <pre tabIndex={0}>{`# POST ${pathOf(kind, "default", "", version)}\n${text}`}</pre>
    </details>
  );
}
