/** Parts that several views have: virtual rows, tabs, refusals, lines of objects. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refusal, type Json } from "./api";
import { link } from "./route";

const BEFORE_AND_AFTER = 12;
export const ROW = 28;
export const LONGEST_SHOWN = 2_000;

/** Text that is shown in part only where it is very long: a line of a megabyte freezes any browser. */
export const cut = (text: string) => (text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}… (${text.length} characters)` : text);

interface VirtualProps {
  count: number;
  row: number;
  label: string;
  role?: "grid" | "list";
  current?: number;
  columns?: number;
  head?: ComponentChildren;
  className?: string;
  onKey?: (event: KeyboardEvent) => void;
  render: (index: number) => ComponentChildren;
}

/** Rows of one height, of which only those in sight are in the document. */
export function Virtual(props: VirtualProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setHeight(element.clientHeight || 600);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    if (props.current === undefined || props.current < 0) return;
    const at = props.current * props.row;
    if (at < element.scrollTop) element.scrollTop = at;
    else if (at + 2 * props.row > element.scrollTop + element.clientHeight)
      element.scrollTop = at + 2 * props.row - element.clientHeight;
  }, [props.current]);
  const first = Math.max(0, Math.floor(top / props.row) - BEFORE_AND_AFTER);
  const last = Math.min(props.count, Math.ceil((top + height) / props.row) + BEFORE_AND_AFTER);
  const shown = [];
  for (let index = first; index < last; index++) shown.push(props.render(index));
  const role = props.role ?? "list";
  return (
    <div
      ref={box}
      class={`virtual ${props.className ?? ""}`}
      role={role}
      aria-label={props.label}
      aria-rowcount={role === "grid" ? props.count + 1 : undefined}
      aria-colcount={props.columns}
      aria-activedescendant={props.current !== undefined && props.current >= 0 ? `row-${props.current}` : undefined}
      tabIndex={0}
      onScroll={(event) => setTop((event.currentTarget as HTMLElement).scrollTop)}
      onKeyDown={props.onKey}
    >
      {props.head}
      <div class="before" role="presentation" style={{ height: `${first * props.row}px` }} />
      {shown}
      <div role="presentation" style={{ height: `${(props.count - last) * props.row}px` }} />
    </div>
  );
}

export function Tabs(props: { tabs: [string, string][]; current: string; label: string; to: (tab: string) => string }) {
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.tabs.map(([name, text]) => (
        <a key={name} href={props.to(name)} aria-current={name === props.current ? "page" : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

/** What went wrong. A denial has a way to its reason. */
export function Problem({ fault }: { fault: unknown }) {
  if (!fault) return null;
  const text = fault instanceof Error ? fault.message : String(fault);
  return (
    <div class="problem" role="alert">
      <p>{cut(text)}</p>
      {fault instanceof Refusal && fault.code === 403 && <a href={whyLink(fault)}>Why? What would allow it?</a>}
    </div>
  );
}

/** Where the rules are shown that would have to allow a request. */
function whyLink(fault: Refusal): string {
  const found = /User "([^"]*)" cannot (\S+) (?:resource|path) "([^"]*)"(?: in API group "([^"]*)")?(?:.*in the namespace "([^"]*)")?/.exec(
    fault.message,
  );
  const [, user, verb, resource, group, namespace] = found ?? [];
  return link(["play", "access"], {
    question: "why",
    subject: user ? `user:${user}` : "",
    verb: verb ?? "",
    resource: resource ?? "",
    group: group ?? "",
    namespace: namespace ?? "",
  });
}

/** Lines of a difference. */
export function Difference({ lines, label }: { lines: Json[]; label: string }) {
  const [folded, setFolded] = useState(true);
  const shown = folded ? withoutTheSame(lines) : lines;
  const changed = lines.filter((line) => line.mark !== "same").length;
  return (
    <section aria-label={label} class="difference">
      <p>
        {changed ? `${changed} lines differ.` : "Nothing differs."}{" "}
        <label>
          <input type="checkbox" checked={!folded} onChange={() => setFolded(!folded)} /> all lines
        </label>
      </p>
      <Virtual
        count={shown.length}
        row={22}
        label={label}
        className="code"
        render={(index) => {
          const line = shown[index]!;
          return (
            <div key={index} role="listitem" class={`line ${line.mark}`} data-origin={line.origin || undefined}>
              <span class="sign">{line.mark === "added" ? "+" : line.mark === "removed" ? "−" : " "}</span>
              <code>{cut(line.text)}</code>
              {line.origin && <span class={`origin ${line.origin}`}>{ORIGINS[line.origin] ?? line.origin}</span>}
            </div>
          );
        }}
      />
    </section>
  );
}

const ORIGINS: Record<string, string> = {
  you: "you",
  admission: "a policy or webhook",
  server: "the server (default)",
};

/** Three lines around each change; what is left out is one line. */
function withoutTheSame(lines: Json[]): Json[] {
  const keep = new Set<number>();
  lines.forEach((line, at) => {
    if (line.mark !== "same") for (let near = at - 3; near <= at + 3; near++) keep.add(near);
  });
  const out: Json[] = [];
  lines.forEach((line, at) => {
    if (keep.has(at)) out.push(line);
    else if (out.length === 0 || out[out.length - 1]!.mark !== "left") out.push({ text: "⋯", mark: "left" });
  });
  return keep.size ? out : [];
}

/** A promise as a state: what it gave, or why it failed. A newer one takes the place of an older one. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): { value?: T; fault?: unknown; again: () => void } {
  const [state, setState] = useState<{ value?: T; fault?: unknown }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stopping = new AbortController();
    setState({});
    load(stopping.signal).then(
      (value) => !stopping.signal.aborted && setState({ value }),
      (fault) => !stopping.signal.aborted && setState({ fault }),
    );
    return () => stopping.abort();
  }, [...inputs, turn]);
  return { ...state, again: () => setTurn(turn + 1) };
}

export function age(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 120) return `${Math.round(seconds)}s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)}h` : `${Math.round(seconds / 86_400)}d`;
}
