/** What the page saw since it was opened, held in memory and bounded; with any cluster this is a history too. */

import type { Json } from "./api";
import { sizeOf } from "./json";
import type { Kind } from "./kinds";

/** A version of an object: when it was written, and by whom. */
export interface Version {
  revision: string;
  time: string;
  change: string;
  managers: string[];
  user?: string;
  group: string;
  plural: string;
  namespace: string;
  name: string;
  labels?: Record<string, string>;
  object?: Json;
}

const MOST = 10_000;
const MOST_OBJECTS = 100;
const MOST_BYTES = 48 << 20;
const byKey = new Map<string, Version>();
const whole: Version[] = [];
let bytes = 0;

const objectKey = (each: Version) => [each.plural, each.group, each.namespace, each.name].join("/");
/** What a version is, wherever it was read. */
export const versionKey = (each: Version) => `${objectKey(each)}/${each.revision}`;

/** Who wrote last: the managers whose entries have the newest time. */
function writersOf(metadata: Json): string[] {
  const entries: Json[] = metadata.managedFields ?? [];
  const newest = entries.reduce((time, each) => (each.time > time ? each.time : time), "");
  return entries
    .filter((each) => each.time === newest)
    .map((each) => `${each.manager}${each.subresource ? `/${each.subresource}` : ""} (${each.operation})`);
}

export function remember(kind: Kind, change: string, metadata: Json, object?: Json): void {
  const made: Version = {
    revision: String(metadata.resourceVersion ?? ""),
    time: new Date().toISOString(),
    change,
    managers: writersOf(metadata),
    group: kind.group,
    plural: kind.plural,
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    labels: metadata.labels,
    object,
  };
  const known = byKey.get(versionKey(made));
  if (known?.object || (known && !object)) return;
  if (known) known.object = object;
  else byKey.set(versionKey(made), made);
  if (object) keepWhole(known ?? made);
  for (const [key, oldest] of byKey) {
    if (byKey.size <= MOST) break;
    if (oldest.object) forget(oldest);
    else byKey.delete(key);
  }
}

/** Counts a version whose object is kept: so many of one object, and so much of all. The oldest go. */
function keepWhole(version: Version): void {
  whole.push(version);
  bytes += sizeOf(version.object!);
  const own = whole.filter((each) => objectKey(each) === objectKey(version));
  if (own.length > MOST_OBJECTS) forget(own[0]!);
  while (bytes > MOST_BYTES && whole.length > 1) forget(whole[0]!);
}

function forget(version: Version): void {
  byKey.delete(versionKey(version));
  whole.splice(whole.indexOf(version), 1);
  bytes -= sizeOf(version.object!);
}

/** What was seen of the objects that are wanted, newest first. */
export function seen(wanted: (version: Version) => boolean): Version[] {
  return [...byKey.values()].filter(wanted).reverse();
}
