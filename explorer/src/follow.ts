/**
 * A list that keeps itself up to date: pages, then a watch from where the list ended.
 *
 * A watch that ends goes on from the last version seen; one that the server refuses as too old (410) starts again with a
 * list; a connection that is lost is tried again, first after half a second, at last every fifteen. What comes is handed
 * on once a frame, so a hundred events a second cost sixty renderings at most.
 */

import { Refusal, cluster, stream, withQuery, type Json } from "./api";
import { seenAgain, whileSeen } from "./visible";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PAGE = 500;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
export const FLASH_MS = 1_200;

export interface Row {
  uid: string;
  cells: unknown[];
  metadata: Json;
  /** When it last changed, and how; 0 for rows of the list. */
  at: number;
  change: "" | "ADDED" | "MODIFIED" | "DELETED";
}

export interface Column {
  name: string;
  type: string;
  priority: number;
  description: string;
}

export type Health = "loading" | "live" | "lost" | "refused";

export class Follower {
  columns: Column[] = [];
  rows: Row[] = [];
  health: Health = "loading";
  problem: unknown;
  changes = 0;
  relists = 0;
  private counts: Record<string, number> = {};
  private index = new Map<string, Row>();
  private version = "";
  private stopping = new AbortController();
  private scheduled = false;

  constructor(
    private readonly path: string,
    private readonly query: Record<string, string>,
    private readonly onChange: () => void,
    private readonly onEvent: (type: string, row: Row) => void = () => undefined,
  ) {
    void this.run();
  }

  stop(): void {
    this.stopping.abort();
  }

  /** How many of each change came since this was asked last. */
  countsSinceAsked(): Record<string, number> {
    const counts = this.counts;
    this.counts = {};
    return counts;
  }

  private async run(): Promise<void> {
    let pause = FIRST_PAUSE;
    while (!this.stopping.signal.aborted) {
      await seenAgain(this.stopping.signal);
      const watching = whileSeen(this.stopping.signal);
      try {
        if (!this.version) await this.list();
        for await (const event of this.watch(watching.signal)) {
          pause = FIRST_PAUSE;
          if (!this.take(event)) break;
        }
      } catch (fault) {
        if (this.stopping.signal.aborted) return;
        if (watching.signal.aborted) continue;
        this.problem = fault;
        if (fault instanceof Refusal && fault.code === 410) {
          this.version = "";
          continue;
        }
        const isFinal = fault instanceof Refusal && [400, 401, 403, 404, 405, 406].includes(fault.code);
        this.say(isFinal ? "refused" : "lost");
        if (isFinal) return;
        await this.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      } finally {
        watching.release();
      }
    }
  }

  private async list(): Promise<void> {
    this.relists += 1;
    const fresh = new Map<string, Row>();
    const rows: Row[] = [];
    let token = "";
    do {
      const path = withQuery(this.path, { ...this.query, limit: PAGE, continue: token });
      const { value } = await cluster(path, { accept: TABLE, signal: this.stopping.signal, quiet: !!token });
      if (value.columnDefinitions) this.columns = value.columnDefinitions;
      for (const each of value.rows ?? []) {
        const row = rowOf(each, this.index.get(each.object?.metadata?.uid));
        fresh.set(row.uid, row);
        rows.push(row);
      }
      token = value.metadata?.continue ?? "";
      this.version = value.metadata?.resourceVersion ?? "";
      if (this.relists === 1) {
        // The first list shows as it comes; later ones take the place of what is there once they are whole.
        this.rows = rows;
        this.soon();
      }
    } while (token && !this.stopping.signal.aborted);
    this.rows = rows;
    this.index = fresh;
    this.soon();
  }

  private watch(signal: AbortSignal): AsyncGenerator<Json> {
    const path = withQuery(this.path, {
      ...this.query,
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: this.version,
    });
    return stream(path, TABLE, signal, () => this.say("live"));
  }

  /** Takes an event; false where the list has to be read again. */
  private take(event: Json): boolean {
    if (event.type === "ERROR") {
      this.version = "";
      if (event.object?.code !== 410) throw new Error(String(event.object?.message ?? "the watch failed"));
      return false;
    }
    const table = event.object;
    if (table.columnDefinitions?.length) this.columns = table.columnDefinitions;
    for (const each of table.rows ?? []) {
      this.version = each.object?.metadata?.resourceVersion ?? this.version;
      if (event.type === "BOOKMARK") continue;
      const known = this.index.get(each.object?.metadata?.uid);
      const row = rowOf(each, known);
      row.at = performance.now();
      row.change = event.type;
      this.changes += 1;
      this.counts[event.type] = (this.counts[event.type] ?? 0) + 1;
      if (!known && event.type !== "DELETED") this.rows.push(row);
      this.index.set(row.uid, row);
      if (event.type === "DELETED") this.forget(row);
      this.onEvent(event.type, row);
    }
    if (event.type === "BOOKMARK") this.version = table.metadata?.resourceVersion ?? this.version;
    this.soon();
    return true;
  }

  /** A deleted row stays for a moment, so that people see it go. */
  private forget(row: Row): void {
    this.index.delete(row.uid);
    setTimeout(() => {
      this.rows = this.rows.filter((each) => each !== row);
      this.soon();
    }, FLASH_MS);
  }

  private say(health: Health): void {
    this.health = health;
    this.soon();
  }

  private soon(): void {
    if (this.scheduled || this.stopping.signal.aborted) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (!this.stopping.signal.aborted) this.onChange();
    });
  }

  private sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.stopping.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** The row of an object; the one that is there is changed, so that it keeps its place. */
function rowOf(given: Json, known?: Row): Row {
  const metadata = given.object?.metadata ?? {};
  if (known) {
    known.cells = given.cells ?? [];
    known.metadata = metadata;
    return known;
  }
  return { uid: metadata.uid ?? metadata.name ?? "", cells: given.cells ?? [], metadata, at: 0, change: "" };
}
