/** The past, wherever it is known: the server's own history where it keeps one, audit logs, what the page saw. */

import { Refusal, ask, cluster, withQuery, type Json } from "./api";
import { pathOf, type Kind } from "./kinds";
import { seen, versionKey, type Version } from "./seen";

const HISTORY = "application/json;as=History;g=kubewright.dev;v=v1";
export const MOST = 200;

/** Which objects: of these kinds, in a namespace (empty: all), with a name (empty: all), with labels. */
export interface Scope {
  kinds: Kind[];
  namespace: string;
  name: string;
  labels: string;
}

/** Who: the user where the server knows him, and the field managers. */
export const whoOf = (version: Version) => [version.user, version.managers.join(", ")].filter(Boolean).join(" as ");

const nameOf = (each: { group: string; plural: string }) => `${each.plural}.${each.group}`;

/** Whether a version is of the scope, but for its labels. */
function within(scope: Scope): (each: Version) => boolean {
  const kinds = new Set(scope.kinds.map(nameOf));
  return (each) =>
    kinds.has(nameOf(each)) && (!scope.name || each.name === scope.name) && (!scope.namespace || each.namespace === scope.namespace);
}

/** What the page saw of the scope. */
export const seenOf = (scope: Scope) => selected(scope, seen(within(scope)));

/** Those of the versions that have the labels of the scope. */
async function selected(scope: Scope, versions: Version[]): Promise<Version[]> {
  if (!scope.labels || !versions.length) return versions;
  const answer = await ask("selected", { selector: scope.labels, labels: versions.map((each) => each.labels ?? {}) });
  return versions.filter((_, index) => answer.selected[index]);
}

/** What a server keeps of one kind: pages, newest first, of which some were read. */
export interface Kept {
  kind: Kind;
  versions: Version[];
  /** Where the next page begins; empty where there is none. */
  token: string;
  /** How far it was read again for what was seen meanwhile. */
  until: number;
  /** Why there is nothing: the server keeps no history (406), or somebody may not read it. */
  refusal?: Refusal;
}

const revisionOf = (version: Version | undefined) => Number(version?.revision ?? 0);

export const unread = (kind: Kind): Kept => ({ kind, versions: [], token: "", until: 0 });

/** A kind with its next page. */
export async function nextPage(scope: Scope, kept: Kept, signal: AbortSignal): Promise<Kept> {
  const path = pathOf(kept.kind, scope.namespace, scope.name);
  try {
    const query = { limit: MOST, continue: kept.token, labelSelector: scope.labels };
    const { value } = await cluster(withQuery(path, query), { accept: HISTORY, signal });
    const { group, plural } = kept.kind;
    const versions: Version[] = (value.entries ?? []).map((each: Json) => ({ ...each, group, plural }));
    return { ...kept, versions: [...kept.versions, ...versions], token: value.metadata?.continue ?? "" };
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    return { ...kept, token: "", refusal: fault };
  }
}

/** Whether a server has more of a kind since it was read, as far as the page saw. */
export function isBehind(kept: Kept, own: Version[]): boolean {
  return !kept.refusal && newestOf(kept, own) > Math.max(kept.until, revisionOf(kept.versions[0]));
}

const newestOf = (kept: Kept, own: Version[]) =>
  own.reduce((most, each) => (nameOf(each) === nameOf(kept.kind) ? Math.max(most, revisionOf(each)) : most), 0);

/** A kind with what the server has of it since: the server knows the users. */
export async function newerPage(scope: Scope, kept: Kept, own: Version[], signal: AbortSignal): Promise<Kept> {
  const fresh = await nextPage(scope, unread(kept.kind), signal);
  const until = newestOf(kept, own);
  const newest = revisionOf(kept.versions[0]);
  const oldest = revisionOf(fresh.versions[fresh.versions.length - 1]);
  if (fresh.refusal || (fresh.token && oldest > newest)) return { ...fresh, until };
  return { ...kept, until, versions: [...fresh.versions.filter((each) => revisionOf(each) > newest), ...kept.versions] };
}

/** The versions of several kinds, newest first, as far as all of them are known: what is older than the last version of a
 * kind that goes on would have gaps. */
export function known(kept: Kept[]): Version[] {
  const whole = Math.max(0, ...kept.filter((each) => each.token).map((each) => revisionOf(each.versions[each.versions.length - 1])));
  return kept
    .flatMap((each) => each.versions)
    .filter((each) => revisionOf(each) >= whole)
    .sort((a, b) => revisionOf(b) - revisionOf(a));
}

/** Versions of several sources, each newest first, as one, newest first and each once; of one that several know the first
 * one's. A version whose time nobody noted is as old as the one before it in its source. */
export function merged(...sources: Version[][]): Version[] {
  const byKey = new Map<string, Version>();
  const times = new Map<string, string>();
  let unnamed = 0;
  for (const source of sources) {
    let last = "";
    for (const each of source) {
      last = each.time || last;
      if (!times.get(versionKey(each))) times.set(versionKey(each), last);
    }
  }
  const timeOf = (each: Version) => each.time || times.get(versionKey(each)) || "9";
  for (const each of sources.flat()) {
    const key = each.revision ? versionKey(each) : String(unnamed++);
    const one = byKey.get(key);
    if (!one) byKey.set(key, each);
    else if (!one.object && each.object) byKey.set(key, { ...one, object: each.object });
  }
  return [...byKey.values()].sort((a, b) => timeOf(b).localeCompare(timeOf(a)) || revisionOf(b) - revisionOf(a));
}

const VERBS: Record<string, string> = { create: "created", update: "updated", patch: "updated", delete: "deleted" };

/** The writes to a scope in an audit log (JSON lines). An event has labels only where it has the object. */
export async function ofAuditLog(text: string, scope: Scope): Promise<Version[]> {
  const isWithin = within(scope);
  const versions = text.split("\n").map(ofEvent);
  return selected(scope, versions.filter((each): each is Version => !!each && isWithin(each)));
}

function ofEvent(line: string): Version | undefined {
  let event: Json;
  try {
    event = JSON.parse(line);
  } catch {
    return undefined;
  }
  const of: Json = event?.objectRef ?? {};
  const change = VERBS[String(event?.verb)];
  if (event?.stage !== "ResponseComplete" || !change || (event.responseStatus?.code ?? 200) >= 300) return undefined;
  if (String(event.requestURI).includes("dryRun=")) return undefined;
  const object = event.responseObject?.kind === "Status" ? undefined : event.responseObject;
  return {
    revision: object?.metadata?.resourceVersion ?? "",
    time: event.stageTimestamp ?? "",
    change,
    user: event.user?.username,
    managers: [String(event.userAgent ?? "").split("/")[0]!].filter(Boolean),
    group: of.apiGroup ?? "",
    plural: of.resource ?? "",
    namespace: of.namespace ?? "",
    name: of.name ?? "",
    labels: object?.metadata?.labels,
    object,
  };
}
