/** What the page saw since it was opened, held in memory and bounded; with any cluster this is a history too. */

import type { Json } from "./api";

export interface Version {
  revision: string;
  time: string;
  change: string;
  managers: string[];
  user?: string;
  namespace: string;
  name: string;
  object?: Json;
}

const MOST = 2_000;
const MOST_OBJECTS = 100;
const byPath = new Map<string, Version[]>();

/** Who wrote last: the managers whose entries have the newest time. */
export function writersOf(metadata: Json): string[] {
  const entries: Json[] = metadata.managedFields ?? [];
  const newest = entries.reduce((time, each) => (each.time > time ? each.time : time), "");
  return entries
    .filter((each) => each.time === newest)
    .map((each) => `${each.manager}${each.subresource ? `/${each.subresource}` : ""} (${each.operation})`);
}

export function remember(path: string, change: string, metadata: Json, object?: Json): void {
  const versions = byPath.get(path) ?? [];
  const revision = String(metadata.resourceVersion ?? "");
  if (versions[0]?.revision === revision && versions[0]?.name === metadata.name) return;
  versions.unshift({
    revision,
    time: new Date().toISOString(),
    change,
    managers: writersOf(metadata),
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    object,
  });
  versions.length = Math.min(versions.length, object ? MOST_OBJECTS : MOST);
  byPath.set(path, versions);
}

export function seen(path: string): Version[] {
  return byPath.get(path) ?? [];
}
