/** The objects of a kind: the server's Table, live. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FLASH_MS, Follower, type Row } from "./follow";
import { pathOf, type Kind } from "./kinds";
import { Problem, ROW, Virtual, cut } from "./parts";
import { go, groupPart, link, type Route } from "./route";
import { remember } from "./seen";

const HEALTH = {
  loading: "loading…",
  live: "live",
  lost: "connection lost; trying again",
  refused: "refused",
};

const SORT_MS = 500;
const SAID_MS = 5_000;

/** A number that follows another, at most so often: sorting ten thousand rows a hundred times a second would stutter. */
function useEvery(milliseconds: number, value: number, isOn: boolean): number {
  const [shown, setShown] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  useEffect(() => {
    if (!isOn) return;
    setShown(latest.current);
    const timer = setInterval(() => setShown(latest.current), milliseconds);
    return () => clearInterval(timer);
  }, [isOn]);
  return shown;
}

/** What changed, for who hears the page: a sentence every few seconds, however much happens. */
function useSummary(source: Follower | null): string {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const timer = setInterval(() => {
      const counts = source?.countsSinceAsked() ?? {};
      const parts = Object.entries(counts).map(([change, count]) => `${count} ${change.toLowerCase()}`);
      setSaid(parts.join(", "));
    }, SAID_MS);
    return () => clearInterval(timer);
  }, [source]);
  return said;
}

export function Objects({ kind, route }: { kind: Kind; route: Route }) {
  const namespace = route.query.get("ns") ?? "";
  const labels = route.query.get("labels") ?? "";
  const fields = route.query.get("fields") ?? "";
  const [, render] = useState(0);
  const [filter, setFilter] = useState("");
  const [sort, setSort] = useState<{ column: number; down: boolean } | null>(null);
  const [at, setAt] = useState(-1);
  const follower = useRef<Follower | null>(null);
  const path = pathOf(kind, namespace);
  useEffect(() => {
    setSort(null);
    setAt(-1);
    const query = { labelSelector: labels, fieldSelector: fields };
    const made = new Follower(
      path,
      query,
      () => render((turn) => turn + 1),
      (type, row) => remember(kind, type, row.metadata),
    );
    follower.current = made;
    return () => made.stop();
  }, [path, labels, fields]);
  const source = follower.current;
  const rows = source?.rows ?? [];
  const sortedAt = useEvery(SORT_MS, source?.changes ?? 0, !!sort);
  const shown = useMemo(() => sorted(filtered(rows, filter), sort), [rows, rows.length, filter, sort, sortedAt]);
  const said = useSummary(source);
  const all = source?.columns ?? [];
  const columns = all.map((column, index) => ({ column, index })).filter(({ column }) => column.priority === 0);
  const hasNamespaces = kind.namespaced && !namespace;
  const template = `${hasNamespaces ? "minmax(8rem, 1fr) " : ""}${columns.map(({ index }) => (index ? "minmax(5rem, 1fr)" : "minmax(10rem, 2fr)")).join(" ")}`;
  const open = (row: Row) =>
    go(["object", groupPart(kind.group), kind.plural, row.metadata.namespace || "-", row.metadata.name ?? ""]);
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step) {
      setAt(Math.max(0, Math.min(shown.length - 1, at + step)));
      event.preventDefault();
    } else if (event.key === "Enter" && shown[at] && (event.target as HTMLElement).tagName !== "A") open(shown[at]!);
  };
  return (
    <section class="objects" aria-label={`Objects of ${kind.kind}`}>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget as HTMLFormElement);
          go(route.parts, { ...Object.fromEntries(route.query), labels: String(given.get("labels")), fields: String(given.get("fields")) });
        }}
      >
        <label>
          Labels <input name="labels" defaultValue={labels} placeholder="app=web,tier!=db" />
        </label>
        <label>
          Fields <input name="fields" defaultValue={fields} placeholder="status.phase=Running" />
        </label>
        <button>Select</button>
        <label>
          Rows with <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
        <output class={`health ${source?.health ?? "loading"}`} data-testid="health">
          {HEALTH[source?.health ?? "loading"]}
        </output>
        <output data-testid="count">
          {shown.length} of {rows.length}
        </output>
      </form>
      <p class="heard" role="status" data-testid="said">
        {said}
      </p>
      {source?.health === "refused" && <Problem fault={source.problem} />}
      {source?.health === "live" && rows.length === 0 && (
        <p class="doc" data-testid="none">
          {labels || fields ? "No object is selected" : `There is no ${kind.kind}`}
          {namespace ? ` in ${namespace}` : ""}. Whatever is created shows up here.
        </p>
      )}
      <Virtual
        count={shown.length}
        row={ROW}
        role="grid"
        columns={columns.length + (hasNamespaces ? 1 : 0)}
        label={`${kind.kind} objects`}
        className="table"
        current={at}
        onKey={onKey}
        head={
          <div role="row" class="head" style={{ gridTemplateColumns: template }} aria-rowindex={1}>
            {hasNamespaces && <span role="columnheader">Namespace</span>}
            {columns.map(({ column, index }) => (
              <span
                key={column.name}
                role="columnheader"
                aria-sort={sort?.column === index ? (sort.down ? "descending" : "ascending") : "none"}
              >
                <button
                  type="button"
                  title={column.description}
                  onClick={() => setSort(sort?.column === index ? (sort.down ? null : { column: index, down: true }) : { column: index, down: false })}
                >
                  {column.name}
                  {sort?.column === index ? (sort.down ? " ↓" : " ↑") : ""}
                </button>
              </span>
            ))}
          </div>
        }
        render={(index) => {
          const row = shown[index]!;
          const isNew = row.at && performance.now() - row.at < FLASH_MS;
          return (
            <div
              key={`${row.uid}/${isNew ? row.metadata.resourceVersion : ""}`}
              id={`row-${index}`}
              role="row"
              aria-rowindex={index + 2}
              class={`row ${index === at ? "current" : ""} ${isNew ? row.change.toLowerCase() : ""}`}
              style={{ gridTemplateColumns: template }}
            >
              {hasNamespaces && <span role="gridcell">{row.metadata.namespace}</span>}
              {columns.map(({ index: cell }) => (
                <span key={cell} role="gridcell">
                  {cell === 0 ? (
                    <a
                      tabIndex={-1}
                      href={link(["object", groupPart(kind.group), kind.plural, row.metadata.namespace || "-", row.metadata.name ?? ""])}
                    >
                      {cut(String(row.cells[cell] ?? ""))}
                    </a>
                  ) : (
                    cut(String(row.cells[cell] ?? ""))
                  )}
                </span>
              ))}
            </div>
          );
        }}
      />
    </section>
  );
}

function filtered(rows: Row[], text: string): Row[] {
  const wanted = text.toLowerCase();
  if (!wanted) return rows;
  return rows.filter((row) => `${row.metadata.namespace ?? ""} ${row.cells.join(" ")}`.toLowerCase().includes(wanted));
}

function sorted(rows: Row[], sort: { column: number; down: boolean } | null): Row[] {
  if (!sort) return rows;
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const text = (row: Row) => String(row.cells[sort.column] ?? "");
  return [...rows].sort((a, b) => compare(text(a), text(b)) * (sort.down ? -1 : 1));
}
