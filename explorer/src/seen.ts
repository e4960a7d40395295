/** What the page saw since it was opened, held in memory and bounded; with any cluster this is a history too. */

import type { Json } from "./api";
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
const byKey = new Map<string, Version>();
const withObject = new Map<string, Version[]>();

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
  if (object) forgetObjects(known ?? made);
  for (const oldest of byKey.keys()) {
    if (byKey.size <= MOST) break;
    byKey.delete(oldest);
  }
}

/** Counts a version whose object is kept; of one object only the newest have theirs. */
function forgetObjects(version: Version): void {
  const those = withObject.get(objectKey(version)) ?? [];
  those.push(version);
  if (those.length > MOST_OBJECTS) byKey.delete(versionKey(those.shift()!));
  withObject.set(objectKey(version), those);
}

/** What was seen of the objects that are wanted, newest first. */
export function seen(wanted: (version: Version) => boolean): Version[] {
  return [...byKey.values()].filter(wanted).reverse();
}
