/** Websites: listed and watched in a table, edited by apply. Served from the address of the API, as `kubectl proxy` does. */
import { ApiError, Client, example_v1 } from "./website_api/index.js";

type Website = example_v1.Website;
const client = new Client({ server: location.origin });
const shown = new Map<string, Website>();

function find<T extends Element>(selector: string, type: new () => T): T {
  const element = document.querySelector(selector);
  if (element instanceof type) return element;
  throw new Error(`the page has no ${selector}`);
}

const rows = find("#rows", HTMLTableSectionElement);
const form = find("#form", HTMLFormElement);
const said = find("#said", HTMLParagraphElement);

function show(): void {
  const sorted = [...shown.values()].sort((a, b) => (a.metadata.name ?? "").localeCompare(b.metadata.name ?? ""));
  rows.replaceChildren(...sorted.map(row));
}

function row(website: Website): HTMLTableRowElement {
  const { metadata, spec, status } = website;
  const line = document.createElement("tr");
  for (const text of [metadata.name, spec.replicas, status?.ready ?? "–"]) line.insertCell().textContent = String(text);
  const remove = document.createElement("button");
  remove.textContent = "Delete";
  remove.onclick = () => void attempt(() => client.delete(example_v1.websites, metadata.name ?? ""));
  line.insertCell().append(remove);
  return line;
}

async function attempt(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
    said.textContent = "";
  } catch (error) {
    said.textContent = error instanceof ApiError ? `${error.reason}: ${error.message}` : String(error);
  }
}

form.onsubmit = (event) => {
  event.preventDefault();
  const data = new FormData(form);
  const spec = { image: "nginx", replicas: Number(data.get("replicas")) };
  const website = { metadata: { name: data.get("name") as string }, spec };
  void attempt(() => client.apply(example_v1.websites, website, { fieldManager: "page" }));
};

async function follow(): Promise<void> {
  for await (const event of client.watch(example_v1.websites, { namespace: "default" })) {
    if (event.type === "LISTED") {
      shown.clear();
      for (const website of event.items) shown.set(website.metadata.name ?? "", website);
    } else if (event.type === "DELETED") shown.delete(event.object.metadata.name ?? "");
    else shown.set(event.object.metadata.name ?? "", event.object);
    show();
  }
}

void attempt(follow);
