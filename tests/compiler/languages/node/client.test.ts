/** The generated client against a server: what is sent, what comes back, what is refused. */
import assert from "node:assert/strict";
import { ApiError, Client, hasReason, post_v1 } from "./parcels/index.js";
import type { WatchEvent } from "./parcels/index.js";

type Parcel = post_v1.Parcel;
const { parcels } = post_v1;
const token = process.env["TOKEN"] ?? "";
const client = new Client({ server: process.env["SERVER"] ?? "", token: () => Promise.resolve(token) });

function parcel(name: string, spec: Partial<post_v1.ParcelSpec> = {}): Parcel {
  const to = { street: "1 Main St", "post-code": "12345", class: "A" };
  return {
    apiVersion: "post.example.com/v1",
    kind: "Parcel",
    metadata: { name, labels: { of: "test" } },
    spec: { weight: 5, carrier: "Ship", to, ...spec },
  };
}

async function refused(reason: string, call: () => Promise<unknown>): Promise<ApiError> {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.reason, reason, error.message);
    return error;
  }
  throw new Error(`not refused: ${reason}`);
}

async function writes(): Promise<void> {
  const made = await client.create(parcels, parcel("a"));
  assert.equal(made.spec.copies, 1);
  assert.equal(made.metadata.namespace, "default");
  await refused("AlreadyExists", () => client.create(parcels, parcel("a")));
  const invalid = await refused("Invalid", () => client.create(parcels, parcel("b", { weight: 0 })));
  assert.equal(invalid.status.details?.causes?.[0]?.field, "spec.weight");
  assert.equal((await client.create(parcels, parcel("dry"), { dryRun: true })).metadata.name, "dry");
  const missing = await refused("NotFound", () => client.get(parcels, "dry"));
  assert.ok(hasReason(missing, "NotFound", "Gone") && missing.code === 404);

  const replaced = await client.replace(parcels, { ...made, spec: { ...made.spec, urgency: 2 } });
  assert.equal(replaced.spec.urgency, 2);
  await refused("Conflict", () => client.replace(parcels, made));
  assert.equal((await client.patch(parcels, "a", { spec: { urgency: null, fragile: true } })).spec.urgency, undefined);
  const patch = [{ op: "replace", path: "/spec/weight", value: 7 }] as const;
  assert.equal((await client.jsonPatch(parcels, "a", patch)).spec.weight, 7);
  const strict = { fieldValidation: "Strict" } as const;
  await refused("Invalid", () => client.patch(parcels, "a", { spec: { unheard: 1 } as object }, strict));
}

async function applies(): Promise<void> {
  const configuration = { metadata: { name: "a" }, spec: { tags: ["x"], urgency: 3 } } as const;
  const applied = await client.apply(parcels, { ...configuration, spec: { tags: ["x"], urgency: 3 } }, { fieldManager: "one" });
  assert.deepEqual([applied.spec.tags, applied.spec.urgency, applied.spec.weight], [["x"], 3, 7]);
  const other = { metadata: { name: "a" }, spec: { urgency: 1 } } as const;
  const conflict = await refused("Conflict", () => client.apply(parcels, other, { fieldManager: "two" }));
  assert.equal(conflict.status.details?.causes?.[0]?.field, ".spec.urgency");
  assert.equal((await client.apply(parcels, other, { fieldManager: "two", force: true })).spec.urgency, 1);
}

async function subresources(): Promise<void> {
  const now = await client.get(parcels, "a");
  const stated = await client.replaceStatus(parcels, { ...now, status: { phase: "Sent", copies: 1 } });
  assert.equal(stated.status?.phase, "Sent");
  assert.equal((await client.patchStatus(parcels, "a", { status: { phase: "Lost" } })).status?.phase, "Lost");
  const status = { metadata: { name: "a" }, status: { conditions: [{ type: "Ok", status: "True" as const }] } };
  assert.equal((await client.applyStatus(parcels, status, { fieldManager: "s" })).status?.conditions?.length, 1);
  assert.equal((await client.scale(parcels, "a", 4)).spec.replicas, 4);
  assert.equal((await client.getScale(parcels, "a")).spec.replicas, 4);
  assert.equal((await client.get(parcels, "a")).spec.copies, 4);
}

async function keepsWhatNoTypeSays(): Promise<void> {
  const options = { deep: [{ unknown: null }, 1.5], none: null };
  const made = await client.create(parcels, parcel("kept", { options, extras: { known: "k", other: { x: 1 } } }));
  assert.deepEqual([made.spec.options, made.spec.extras], [options, { known: "k", other: { x: 1 } }]);
  const again = await client.replace(parcels, made);
  assert.deepEqual(again.spec, made.spec);
}

async function lists(): Promise<void> {
  for (const name of ["l1", "l2", "l3"]) await client.create(parcels, parcel(name, { carrier: "Air mail" }));
  const page = await client.list(parcels, { namespace: "default", limit: 2 });
  assert.equal(page.items.length, 2);
  assert.ok(page.metadata.continue);
  const names: string[] = [];
  for await (const one of client.pages(parcels, { limit: 2, fieldSelector: "spec.carrier=Air mail" })) {
    assert.equal(one.kind, "Parcel");
    names.push(one.metadata.name ?? "");
  }
  assert.deepEqual(names, ["l1", "l2", "l3"]);
  const stale = { resourceVersion: "1", limit: 1, continue: "nonsense" };
  await refused("BadRequest", () => client.list(parcels, stale));
}

async function watches(): Promise<void> {
  const ending = new AbortController();
  const seen: string[] = [];
  const watching = client.watch(parcels, { namespace: "default", labelSelector: "of=test", signal: ending.signal });
  for await (const event of watching) {
    if (event.type === "LISTED") {
      seen.push(`LISTED ${String(event.items.length > 0)}`);
      await client.create(parcels, parcel("w"));
      await client.patch(parcels, "w", { spec: { weight: 9 } });
      await client.delete(parcels, "w", { propagationPolicy: "Background" });
    } else {
      seen.push(`${event.type} ${event.object.metadata.name ?? ""} ${String(event.object.spec.weight)}`);
      if (event.type === "DELETED") ending.abort();
    }
  }
  assert.deepEqual(seen, ["LISTED true", "ADDED w 5", "MODIFIED w 9", "DELETED w 9"]);
}

/** A server of three answers: the place is forgotten, the list, a change; then the connection breaks and is made again. */
async function watchesAgain(): Promise<void> {
  const asked: string[] = [];
  const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
  const at = (resourceVersion: string): unknown => ({ ...parcel("f"), metadata: { name: "f", resourceVersion } });
  const answers = [
    line("ERROR", { kind: "Status", code: 410, reason: "Expired" }),
    JSON.stringify({ metadata: { resourceVersion: "10" }, items: [{ metadata: { name: "f" } }] }),
    line("MODIFIED", at("11")) + line("BOOKMARK", at("12")),
    line("DELETED", at("13")),
  ];
  const send: typeof fetch = (input) => {
    const url = new URL(input as URL);
    asked.push(`${url.searchParams.has("watch") ? "watch" : "list"} ${url.searchParams.get("resourceVersion") ?? ""}`);
    return Promise.resolve(new Response(answers.shift() ?? "{}"));
  };
  const events: WatchEvent<Parcel>[] = [];
  for await (const event of new Client({ server: "http://x", fetch: send }).watch(parcels, { resourceVersion: "1" })) {
    events.push(event);
    if (event.type === "DELETED") break;
  }
  assert.deepEqual(events.map((event) => event.type), ["LISTED", "MODIFIED", "DELETED"]);
  assert.deepEqual(asked, ["watch 1", "list ", "watch 10", "watch 12"]);
  assert.ok(events[0]?.type === "LISTED" && events[0].items[0]?.kind === "Parcel");
}

async function ends(): Promise<void> {
  await client.delete(parcels, "a");
  await client.deleteCollection(parcels, { namespace: "default", labelSelector: "of=test" });
  assert.deepEqual((await client.list(parcels)).items, []);
  const nobody = new Client({ server: process.env["SERVER"] ?? "", token: "wrong" });
  await refused("Unauthorized", () => nobody.list(parcels));
  const version = (await client.request("GET", "/version")) as { major?: string };
  assert.ok(version.major);
}

for (const step of [writes, applies, subresources, keepsWhatNoTypeSays, lists, watches, watchesAgain, ends]) {
  await step();
  console.log(`ok ${step.name}`);
}
