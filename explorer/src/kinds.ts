/** What the cluster serves: groups, versions and kinds, out of aggregated discovery. */

import { cluster, type Json } from "./api";

export interface Kind {
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  shortNames: string[];
  subresources: { name: string; verbs: string[] }[];
  /** All versions that serve it, the preferred one first. */
  versions: string[];
}

const DISCOVERY = ["v2", "v2beta1"]
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(",");

/** All kinds, each at its preferred version. Throws a Refusal. */
export async function readKinds(): Promise<Kind[]> {
  const [core, named] = await Promise.all(["/api", "/apis"].map((root) => cluster(root, { accept: DISCOVERY })));
  const groups: Json[] = [...(core!.value.items ?? []), ...(named!.value.items ?? [])];
  const kinds = new Map<string, Kind>();
  for (const group of groups) {
    for (const version of group.versions ?? []) {
      for (const resource of version.resources ?? []) {
        const name = `${resource.resource}.${group.metadata?.name ?? ""}`;
        const known = kinds.get(name);
        if (known) known.versions.push(version.version);
        else kinds.set(name, kindOf(group.metadata?.name ?? "", version.version, resource));
      }
    }
  }
  return [...kinds.values()].sort((a, b) => a.group.localeCompare(b.group) || a.kind.localeCompare(b.kind));
}

function kindOf(group: string, version: string, resource: Json): Kind {
  return {
    group,
    version,
    plural: resource.resource,
    kind: resource.responseKind?.kind ?? resource.resource,
    namespaced: resource.scope === "Namespaced",
    verbs: resource.verbs ?? [],
    shortNames: resource.shortNames ?? [],
    subresources: (resource.subresources ?? []).map((each: Json) => ({
      name: each.subresource,
      verbs: each.verbs ?? [],
    })),
    versions: [version],
  };
}

/** apiVersion of a kind at one of its versions. */
export function apiVersion(kind: Kind, version = kind.version): string {
  return kind.group ? `${kind.group}/${version}` : version;
}

/** Where the objects of a kind are. */
export function pathOf(kind: Kind, namespace = "", name = "", version = kind.version): string {
  const root = kind.group ? `/apis/${encodeURIComponent(kind.group)}` : "/api";
  const scope = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  const last = name ? `/${encodeURIComponent(name)}` : "";
  return `${root}/${encodeURIComponent(version)}${scope}/${encodeURIComponent(kind.plural)}${last}`;
}

/** Kinds that a search means: every word is in the kind, plural, short names or group. */
export function matching(kinds: Kind[], search: string): Kind[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (kind: Kind) => [kind.kind, kind.plural, kind.group, ...kind.shortNames].join(" ").toLowerCase();
  const rank = (kind: Kind) =>
    kind.shortNames.includes(search) || kind.plural === search || kind.kind.toLowerCase() === search ? 0 : 1;
  return kinds
    .filter((kind) => words.every((word) => text(kind).includes(word)))
    .sort((a, b) => rank(a) - rank(b));
}
