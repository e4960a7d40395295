/** Time lines: who changed what when, of a kind, a namespace or a selection; and what all of them have. */

import { useEffect, useRef, useState } from "preact/hooks";
import { askOn, type Json } from "./api";
import { pathOf, type Kind } from "./kinds";
import { MOST, isBehind, known, merged, newerPage, nextPage, ofAuditLog, seenOf, unread, whoOf, type Kept, type Scope } from "./past";
import { Problem, ROW, Virtual, cut } from "./parts";
import { go, groupPart, link, type Route } from "./route";
import { remember, versionKey, type Version } from "./seen";
import { seenAgain, whileSeen } from "./visible";

/** A time line as it is read. ``versions`` is undefined until there is something to show. */
export interface Line {
  scope: Scope;
  versions?: Version[];
  kept: Kept[];
  fault?: unknown;
  again: () => void;
  older: () => void;
  add: (audited: Version[]) => void;
}

const NO_HISTORY = [404, 406];

/** Reads the past of a scope; whenever `turn` is another one, what the page saw is looked at again. */
export function useTimeLine(scope: Scope, turn: unknown): Line {
  const [kept, setKept] = useState<Kept[]>();
  const [audited, setAudited] = useState<Version[]>([]);
  const [versions, setVersions] = useState<Version[]>();
  const [fault, setFault] = useState<unknown>();
  const [reading, setReading] = useState(0);
  const signal = useRef(new AbortController());
  const isDeleted = turn === "";
  const load = (sources: Kept[], isMeant: (each: Kept) => boolean, page: typeof nextPage) => {
    const { signal: own } = signal.current;
    Promise.all(sources.map((each) => (isMeant(each) ? page(scope, each, own) : each))).then(
      (found) => own.aborted || setKept(found),
      (caught) => own.aborted || setFault(caught),
    );
  };
  useEffect(() => {
    signal.current = new AbortController();
    setFault(undefined);
    setKept(undefined);
    setVersions(undefined);
    load(scope.kinds.map(unread), () => true, nextPage);
    return () => signal.current.abort();
  }, [scope.kinds.map((kind) => kind.plural + kind.group).join(), scope.namespace, scope.name, scope.labels, reading, isDeleted]);
  useEffect(() => {
    let gone = false;
    if (kept)
      seenOf(scope).then(
        (own) => {
          if (gone) return;
          setVersions(merged(known(kept), audited, own));
          const isMeant = (each: Kept) => isBehind(each, own);
          if (kept.some(isMeant)) load(kept, isMeant, (...asked) => newerPage(asked[0], asked[1], own, asked[2]));
        },
        (caught) => gone || setFault(caught),
      );
    return () => {
      gone = true;
    };
  }, [kept, audited, turn]);
  return {
    scope,
    versions,
    kept: kept ?? [],
    fault,
    again: () => setReading(reading + 1),
    older: () => load(kept ?? [], (each) => !!each.token, nextPage),
    add: setAudited,
  };
}

/** Where what is shown is from, and what of it is missing. */
export function Explained({ line }: { line: Line }) {
  const asked = line.kept.filter((each) => each.refusal?.code !== 404);
  const keeps = line.kept.some((each) => !each.refusal);
  const denied = asked.filter((each) => each.refusal && !NO_HISTORY.includes(each.refusal.code));
  return (
    <>
      <p class="doc">
        {keeps
          ? "Kept by the server."
          : "This server keeps no history (serve --keep-history does): what the page has seen since it was opened, while it was shown, and what audit logs say."}
      </p>
      {denied.length > 0 && (
        <details class="problem">
          <summary>{denied.length === 1 ? "One kind is missing" : `${denied.length} kinds are missing`}: the server says no.</summary>
          {denied.map((each) => (
            <p key={each.kind.plural + each.kind.group}>{cut(each.refusal!.message)}</p>
          ))}
        </details>
      )}
    </>
  );
}

export function Older({ line }: { line: Line }) {
  if (!line.kept.some((each) => each.token)) return null;
  return (
    <button type="button" onClick={line.older} title={`The newest ${MOST} of each kind come first.`}>
      Older
    </button>
  );
}

export function AuditFile({ line }: { line: Line }) {
  const [said, setSaid] = useState("");
  const read = async (file: File | undefined) => {
    if (!file) return;
    const text = await file.text();
    const versions = await ofAuditLog(text, line.scope);
    const isLog = text.includes('"objectRef"');
    setSaid(versions.length ? "" : isLog ? "Nothing in it is a write of this." : `${file.name} has no audit events: give a log of JSON lines.`);
    line.add(versions);
  };
  return (
    <>
      <label>
        Add an audit log{" "}
        <input type="file" onChange={(event) => read(event.currentTarget.files?.[0]).catch((fault) => setSaid(String(fault)))} />
      </label>
      <span role="alert" class="bad">
        {cut(said)}
      </span>
    </>
  );
}

/** A time as people read it: UTC, as everywhere on the page, with milliseconds where they are known. */
export const When = ({ time }: { time: string }) => <time dateTime={time}>{time.replace("T", " ").replace("Z", "")}</time>;

/** Many small changes of machines, which hide those of people. */
const NOISE = ["events.", "events.events.k8s.io", "leases.coordination.k8s.io"];

/** The kinds of which a time line of everything is made. */
function followed(kinds: Kind[], namespace: string, noise: boolean): Kind[] {
  return kinds.filter(
    (kind) =>
      kind.verbs.includes("list") &&
      kind.verbs.includes("watch") &&
      (kind.namespaced || !namespace) &&
      (noise || !NOISE.includes(`${kind.plural}.${kind.group}`)),
  );
}

/** The time line of a namespace, of a selection, or of all there is. */
export function TimePage({ kinds, route }: { kinds: Kind[]; route: Route }) {
  const query = Object.fromEntries(route.query);
  const { ns = "", labels = "", noise = "" } = query;
  const meant = followed(kinds, ns, !!noise);
  return (
    <article>
      <h1>Who changed what when</h1>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget as HTMLFormElement);
          go(["time"], Object.fromEntries([...given].map(([name, text]) => [name, String(text).trim()])));
        }}
      >
        <label>
          Namespace <input name="ns" defaultValue={ns} placeholder="all" />
        </label>
        <label>
          Labels <input name="labels" defaultValue={labels} placeholder="app=web,tier!=db" />
        </label>
        <label>
          <input type="checkbox" name="noise" value="yes" defaultChecked={!!noise} /> with Events and Leases
        </label>
        <button class="primary">Show</button>
      </form>
      <TimeLine key={JSON.stringify(query)} kinds={meant} namespace={ns} labels={labels} />
    </article>
  );
}

const SOON_MS = 300;

/** Follows the kinds while the line is shown, and says how often something came. */
function useFollowed(kinds: Kind[], namespace: string, labels: string): { changes: number; lost: boolean } {
  const [changes, setChanges] = useState(0);
  const [lost, setLost] = useState(false);
  useEffect(() => {
    const stopping = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onEvent = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (!stopping.signal.aborted) setChanges((count) => count + 1);
      }, SOON_MS);
    };
    void follow(kinds, namespace, labels, stopping.signal, onEvent, setLost);
    return () => {
      stopping.abort();
      clearTimeout(timer);
    };
  }, []);
  return { changes, lost };
}

async function follow(
  kinds: Kind[],
  namespace: string,
  labels: string,
  signal: AbortSignal,
  onEvent: () => void,
  onLost: (lost: boolean) => void,
): Promise<void> {
  const byPath = new Map(kinds.map((kind) => [pathOf(kind, namespace), kind]));
  let pause = 500;
  while (!signal.aborted) {
    await seenAgain(signal);
    const watching = whileSeen(signal);
    try {
      for await (const event of askOn("follow", { paths: [...byPath.keys()], labels }, watching.signal)) {
        onLost(false);
        pause = 500;
        const kind = byPath.get(event.path);
        if (!kind || !event.metadata) continue;
        remember(kind, event.type, event.metadata as Json);
        onEvent();
      }
    } catch {
      // Told below; it is tried again.
    } finally {
      watching.release();
    }
    if (signal.aborted || watching.signal.aborted) continue;
    onLost(true);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 15_000);
  }
}

/** The changes of some kinds in a namespace, or with labels, as they come. */
export function TimeLine({ kinds, namespace, labels }: { kinds: Kind[]; namespace: string; labels: string }) {
  const { changes, lost } = useFollowed(kinds, namespace, labels);
  const line = useTimeLine({ kinds, namespace, name: "", labels }, changes);
  const [filter, setFilter] = useState("");
  const [at, setAt] = useState(-1);
  if (line.fault !== undefined) return <Problem fault={line.fault} />;
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const kindOf = new Map(kinds.map((kind) => [`${kind.plural}.${kind.group}`, kind]));
  const rows = (line.versions ?? []).map((version) => ({ version, kind: kindOf.get(`${version.plural}.${version.group}`)! }));
  const shown = rows.filter(({ version, kind }) => {
    const text = `${kind.kind} ${version.namespace}/${version.name} ${version.change} ${whoOf(version)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const place = ({ version, kind }: (typeof rows)[number]): [string[], Record<string, string>] => [
    ["object", groupPart(kind.group), kind.plural, version.namespace || "-", version.name],
    { tab: "time", at: version.revision },
  ];
  const template = `minmax(11rem, 13rem) 5rem ${kinds.length > 1 ? "minmax(7rem, 1fr) " : ""}minmax(8rem, 2fr) minmax(8rem, 3fr)`;
  return (
    <section class="time" aria-label="Time line">
      {line.versions ? <Explained line={line} /> : <p>Reading what was…</p>}
      <div class="filters">
        <label>
          Changes with <input type="search" value={filter} placeholder="a name, kind, user or manager" onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
        <button type="button" onClick={line.again}>
          Read again
        </button>
        <Older line={line} />
        <AuditFile line={line} />
        <output>{shown.length === 1 ? "1 change" : `${shown.length} changes`}</output>
        {lost && <span class="bad">connection lost; trying again</span>}
      </div>
      {line.versions?.length === 0 && <p class="doc">Nothing is known of the past yet: what changes from now on is listed here.</p>}
      <Virtual
        count={shown.length}
        row={ROW}
        role="grid"
        columns={kinds.length > 1 ? 5 : 4}
        label="Changes, newest first"
        className="table"
        current={at}
        onKey={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 20, PageUp: -20 }[event.key];
          if (step) {
            setAt(Math.max(0, Math.min(shown.length - 1, at + step)));
            event.preventDefault();
          } else if (event.key === "Enter" && shown[at] && (event.target as HTMLElement).tagName !== "A") go(...place(shown[at]!));
        }}
        head={
          <div role="row" class="head" style={{ gridTemplateColumns: template }} aria-rowindex={1}>
            {["When", "Change", ...(kinds.length > 1 ? ["Kind"] : []), "Object", "By whom"].map((name) => (
              <span key={name} role="columnheader">
                {name}
              </span>
            ))}
          </div>
        }
        render={(index) => {
          const row = shown[index]!;
          const { version, kind } = row;
          return (
            <div
              key={`${versionKey(version)}/${version.time}`}
              id={`row-${index}`}
              role="row"
              aria-rowindex={index + 2}
              class={`row ${index === at ? "current" : ""}`}
              style={{ gridTemplateColumns: template }}
            >
              <span role="gridcell">
                <When time={version.time} />
              </span>
              <span role="gridcell" class={`change ${version.change.toLowerCase()}`}>
                {version.change.toLowerCase()}
              </span>
              {kinds.length > 1 && <span role="gridcell">{kind.kind}</span>}
              <span role="gridcell">
                <a tabIndex={-1} href={link(...place(row))}>
                  {cut(version.namespace && !namespace ? `${version.namespace}/${version.name}` : version.name)}
                </a>
              </span>
              <span role="gridcell" title={cut(whoOf(version))}>
                {cut(whoOf(version))}
              </span>
            </div>
          );
        }}
      />
    </section>
  );
}
