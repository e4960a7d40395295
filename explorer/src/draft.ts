/** A document that somebody changes: its entries with their schemas, what may be added to each, and the JSON patch of it all. */

import type { Json } from "./api";
import { resolved, sample, typeOf } from "./schema";

export type Path = (string | number)[];

/** A value of a document. ``schema`` is empty where nothing is known of it. */
export interface Entry {
  path: Path;
  label: string;
  value: unknown;
  schema: Json;
  required: boolean;
}

export const isHolder = (value: unknown): value is object => value !== null && typeof value === "object";

const labelOf = (above: string, part: string | number) => (typeof part === "number" ? `${above}[${part}]` : above ? `${above}.${part}` : part);

/** Fields that only the server writes, or that no patch can change. */
const FIXED = new Set(["apiVersion", "kind", "status", "metadata.name", "metadata.namespace", "metadata.generateName"]);

/** The entries of a document in order, each holder before what it holds. Nulls are nobody's to change. */
export function entriesOf(document: Json, schema: Json, schemas: Json): Entry[] {
  const out: Entry[] = [];
  const visit = (entry: Entry) => {
    if (entry.path.length) out.push(entry);
    if (!isHolder(entry.value)) return;
    for (const [name, value] of Object.entries(entry.value)) {
      const part = Array.isArray(entry.value) ? Number(name) : name;
      const label = labelOf(entry.path.length ? entry.label : "", part);
      if (value === null || value === undefined || FIXED.has(label)) continue;
      const required = (entry.schema.required ?? []).includes(name);
      visit({ path: [...entry.path, part], label, value, schema: schemaBelow(entry.schema, part, schemas), required });
    }
  };
  visit({ path: [], label: "the object", value: document, schema: resolved(schema, schemas), required: true });
  return out;
}

function schemaBelow(schema: Json, part: string | number, schemas: Json): Json {
  const below = typeof part === "number" ? schema.items : (schema.properties?.[part] ?? schema.additionalProperties);
  return isHolder(below) ? resolved(below, schemas) : {};
}

/** What may be put into a holder: named fields that are not there yet, a map's own keys, items of a list. */
export interface Addable {
  fields: { name: string; type: string; schema: Json }[];
  keys?: Json;
  items?: Json;
}

export function addableTo(entry: Pick<Entry, "path" | "value" | "schema">, schemas: Json, serverFields: string[]): Addable {
  const { path, value, schema } = entry;
  if (Array.isArray(value)) return { fields: [], items: schemaBelow(schema, 0, schemas) };
  const isMetadata = path.length === 1 && path[0] === "metadata";
  const fields = Object.entries<Json>(schema.properties ?? {})
    .filter(([name]) => !(name in (value as Json)) && !FIXED.has([...path, name].join(".")) && !(isMetadata && serverFields.includes(name)))
    .map(([name, below]) => ({ name, type: typeOf(below, schemas), schema: resolved(below, schemas) }));
  const isOpen = schema.additionalProperties || schema["x-kubernetes-preserve-unknown-fields"] || !schema.properties;
  return { fields, keys: isOpen ? schemaBelow({ additionalProperties: schema.additionalProperties }, "", schemas) : undefined };
}

export const isInteger = (schema: Json) => Boolean(schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string");
export const isTyped = (schema: Json) => Boolean(schema.type || schema.properties || schema.oneOf || schema.enum || isInteger(schema));

/** What a new entry begins with. */
export const firstValue = (schema: Json, schemas: Json) => sample(schema, schemas);

/** A document with another value at a path; a path that is one longer than a list appends to it. */
export function put<T>(document: T, path: Path, value: unknown): T {
  const [part, ...rest] = path;
  if (part === undefined) return value as T;
  const copy: any = Array.isArray(document) ? [...document] : { ...document };
  copy[part] = put(copy[part], rest, value);
  return copy;
}

/** A document without what is at a path. */
export function without<T>(document: T, path: Path): T {
  const above = path.slice(0, -1);
  const last = path[path.length - 1]!;
  const holder: any = at(document, above);
  const left = Array.isArray(holder) ? holder.filter((_, index) => index !== last) : Object.fromEntries(Object.entries(holder).filter(([name]) => name !== last));
  return put(document, above, left);
}

export function at(document: unknown, path: Path): unknown {
  let value: any = document;
  for (const part of path) value = value?.[part];
  return value;
}

/** Whether two values are the same; what both documents share is not looked into. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isHolder(a) || !isHolder(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const [own, other] = [Object.entries(a), b as Json];
  return own.length === Object.keys(b).length && own.every(([name, value]) => name in other && same(value, other[name]));
}

export interface Operation {
  op: "add" | "remove" | "replace" | "test";
  path: string;
  value?: unknown;
}

const escaped = (part: string | number) => String(part).replaceAll("~", "~0").replaceAll("/", "~1");

/** The operations that make one value of another. */
export function patchOf(before: unknown, after: unknown, path = ""): Operation[] {
  if (same(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return patchOfList(before, after, path);
  if (!isHolder(before) || !isHolder(after) || Array.isArray(before) || Array.isArray(after)) return [{ op: "replace", path, value: after }];
  const [old, made] = [before as Json, after as Json];
  const gone = Object.keys(old).filter((name) => !(name in made));
  return [
    ...gone.map((name): Operation => ({ op: "remove", path: `${path}/${escaped(name)}` })),
    ...Object.entries(made).flatMap(([name, value]): Operation[] =>
      name in old ? patchOf(old[name], value, `${path}/${escaped(name)}`) : [{ op: "add", path: `${path}/${escaped(name)}`, value }],
    ),
  ];
}

/** Equal ends stay, the items between are changed in their places, the rest comes or goes behind them. */
function patchOfList(before: unknown[], after: unknown[], path: string): Operation[] {
  const shorter = Math.min(before.length, after.length);
  let first = 0;
  let last = 0;
  while (first < shorter && same(before[first], after[first])) first++;
  while (last < shorter - first && same(before[before.length - 1 - last], after[after.length - 1 - last])) last++;
  const both = shorter - first - last;
  const out: Operation[] = [];
  for (let index = first; index < first + both; index++) out.push(...patchOf(before[index], after[index], `${path}/${index}`));
  for (let index = before.length - last - 1; index >= first + both; index--) out.push({ op: "remove", path: `${path}/${index}` });
  for (let index = first + both; index < after.length - last; index++) out.push({ op: "add", path: `${path}/${index}`, value: after[index] });
  return out;
}
