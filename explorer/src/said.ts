/** A request in the words of other programs. */

import { about, type Sent } from "./api";

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

export function asCurl(request: Sent): string {
  const words = ["curl", "-H", '"Authorization: Bearer $TOKEN"'];
  if (request.method !== "GET") words.push("-X", request.method);
  for (const [name, value] of Object.entries(request.headers)) words.push("-H", quoted(`${name}: ${value}`));
  if (request.body) words.push("--data-binary", quoted(request.body));
  return [...words, quoted(`${about.server}${request.path}`)].join(" ");
}

/** kubectl has a word for some requests; for reads of anything else there is `--raw`. */
export function asKubectl(request: Sent): string {
  const [path, search] = request.path.split("?");
  const query = new URLSearchParams(search ?? "");
  const found = /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?$/.exec(path!);
  if (!found) return request.method === "GET" ? `kubectl get --raw ${quoted(request.path)}` : "# kubectl sends no such request";
  const [, group, version, namespace, plural, name] = found.map((part) => part && decodeURIComponent(part));
  const resource = group ? `${plural}.${version}.${group}` : plural;
  const scope = namespace ? ` -n ${quoted(namespace)}` : name ? "" : " -A";
  const of = name ? ` ${quoted(name)}` : "";
  const dryRun = query.get("dryRun") ? " --dry-run=server" : "";
  const manager = query.get("fieldManager") ? ` --field-manager ${quoted(query.get("fieldManager")!)}` : "";
  if (request.method === "GET") {
    const selector = query.get("labelSelector") ? ` -l ${quoted(query.get("labelSelector")!)}` : "";
    const fields = query.get("fieldSelector") ? ` --field-selector ${quoted(query.get("fieldSelector")!)}` : "";
    return `kubectl get ${resource}${of}${scope}${selector}${fields}${query.get("watch") ? " --watch" : ""}`;
  }
  const type = request.headers["Content-Type"] ?? "";
  if (type.includes("apply-patch")) {
    const force = query.get("force") === "true" ? " --force-conflicts" : "";
    return `kubectl apply --server-side${manager}${force}${dryRun}${scope} -f - <<'END'\n${request.body}\nEND`;
  }
  if (request.method === "PATCH") {
    const kind = type.includes("json-patch") ? "json" : type.includes("strategic") ? "strategic" : "merge";
    return `kubectl patch ${resource}${of}${scope} --type ${kind}${manager}${dryRun} -p ${quoted(request.body ?? "")}`;
  }
  if (request.method === "DELETE") return `kubectl delete ${resource}${of}${scope}${dryRun}`;
  const verb = request.method === "POST" ? "create" : "replace";
  return `kubectl ${verb}${manager}${dryRun} -f - <<'END'\n${request.body}\nEND`;
}

export function asPython(request: Sent): string {
  const headers = JSON.stringify(request.headers);
  const body = request.body ? `, ${pythonText(request.body)}.encode()` : "";
  return [
    "from apimachinery.client.calls import UNSTRUCTURED, Call",
    "from apimachinery.client.connection import Client",
    "from apimachinery.client.transport import Request",
    "",
    "with Client() as client:",
    `    request = Request("${request.method}", ${pythonText(request.path)}, ${headers}${body})`,
    "    print(client.run(Call(request, UNSTRUCTURED.decode, repeatable=False)))",
  ].join("\n");
}

/** JSON's strings are Python's, but for halves of surrogate pairs, which YAML and JSON bodies do not have. */
const pythonText = (text: string) => JSON.stringify(text);
