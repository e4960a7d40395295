/** Requests: to the explorer's own server (`ask`) and, through it, to the cluster (`cluster`). */

import { sized, written } from "./json";

export type Json = Record<string, any>;

export interface Cause {
  reason?: string;
  message?: string;
  field?: string;
}

/** A refusal of the cluster, as its Status says it. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    readonly status: Json,
    readonly request: Sent,
  ) {
    super(String(status.message ?? `answered ${code}`));
  }

  get causes(): Cause[] {
    return this.status.details?.causes ?? [];
  }
}

/** A request that was sent, for the list of requests. */
export interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
  code?: number;
}

export interface Answer {
  value: Json;
  warnings: string[];
}

/** The key of this run is in the fragment of the address, before the place in the page. It is kept nowhere else. */
const fragment = decodeURIComponent(location.hash.slice(1));
const slash = fragment.indexOf("/");
export const key = slash < 0 ? fragment : fragment.slice(0, slash);

let token = "";
export let about: Json = {};
const sent: Sent[] = [];
const listeners = new Set<() => void>();
const MOST_SENT = 300;

/** The user's own token, held in this variable alone. */
export function logIn(given: string): void {
  token = given;
}

export function requests(): readonly Sent[] {
  return sent;
}

export function onRequest(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function note(request: Sent): void {
  sent.unshift(request);
  sent.length = Math.min(sent.length, MOST_SENT);
  for (const listener of listeners) listener();
}

function own(headers: Record<string, string>): Record<string, string> {
  const all: Record<string, string> = { ...headers, "Kubewright-Explorer": key };
  if (token) all["Authorization"] = `Bearer ${token}`;
  return all;
}

/** Something that the explorer computes. Throws an Error with its text. */
export async function ask(question: string, asked?: Json, signal?: AbortSignal): Promise<Json> {
  const body = asked === undefined ? undefined : await written(asked);
  const response = await fetch(`/explorer/${question}`, {
    method: asked === undefined ? "GET" : "POST",
    headers: own({}),
    body,
    signal,
  });
  const text = await response.text();
  if (!response.ok) {
    let shown: Json = {};
    try {
      shown = JSON.parse(text);
    } catch {
      // plain text
    }
    throw new Error(shown.message ?? text.trim());
  }
  return JSON.parse(text);
}

export async function readAbout(): Promise<void> {
  about = await ask("about");
}

export interface Options {
  method?: string;
  accept?: string;
  body?: string;
  type?: string;
  signal?: AbortSignal;
  quiet?: boolean;
}

async function send(path: string, options: Options): Promise<{ response: Response; request: Sent }> {
  const headers: Record<string, string> = { Accept: options.accept ?? "application/json" };
  if (options.type) headers["Content-Type"] = options.type;
  const request: Sent = { method: options.method ?? "GET", path, headers, body: options.body };
  const response = await fetch(`/cluster${path}`, {
    method: request.method,
    headers: own(headers),
    body: options.body,
    signal: options.signal,
    cache: "no-store",
  });
  request.code = response.status;
  if (!options.quiet) note(request);
  return { response, request };
}

/** A request to the cluster. Throws a Refusal where it says no. */
export async function cluster(path: string, options: Options = {}): Promise<Answer> {
  const { response, request } = await send(path, options);
  const text = await response.text();
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    value = { message: text.trim() || response.statusText };
  }
  if (!response.ok) throw new Refusal(response.status, value, request);
  sized(value, text.length);
  return { value, warnings: warningsOf(response.headers.get("warning")) };
}

/** The texts of Warning headers, which are one header to a browser. */
function warningsOf(header: string | null): string[] {
  return [...(header ?? "").matchAll(/\d{3} [^ ]+ "((?:[^"\\]|\\.)*)"/g)].map((match) => match[1]!.replace(/\\(.)/g, "$1"));
}

/**
 * The lines of a watch, each an event; `onOpen` is called once the server has accepted it. Throws a Refusal, or what fetch
 * throws where the connection ends early.
 */
export async function* stream(path: string, accept: string, signal: AbortSignal, onOpen = () => {}): AsyncGenerator<Json> {
  const { response, request } = await send(path, { accept, signal });
  if (!response.ok || !response.body) {
    const text = await response.text();
    let status: Json = { message: text };
    try {
      status = JSON.parse(text);
    } catch {
      // plain text
    }
    throw new Refusal(response.status, status, request);
  }
  onOpen();
  yield* jsonLines(response.body);
}

/** The lines of something that the explorer goes on answering. Throws an Error with its text, or what fetch throws. */
export async function* askOn(question: string, asked: Json, signal: AbortSignal): AsyncGenerator<Json> {
  const response = await fetch(`/explorer/${question}`, { method: "POST", headers: own({}), body: JSON.stringify(asked), signal });
  if (!response.ok || !response.body) throw new Error((await response.text()).trim());
  yield* jsonLines(response.body);
}

async function* jsonLines(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Json> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (!line) continue;
        const event = JSON.parse(line);
        if (event.object) sized(event.object, line.length);
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** A path with its parts escaped; empty parameters are left out. */
export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.length ? `${path}?${parts.join("&")}` : path;
}
