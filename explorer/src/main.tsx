/** The explorer: the frame around the views, and which of them is shown. */

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refusal, about, key, logIn, onRequest, ask, readAbout, requests, type Json, type Sent } from "./api";
import { apiVersion, matching, readKinds, type Kind } from "./kinds";
import { ObjectPage } from "./object";
import { Problem, Tabs } from "./parts";
import { Access } from "./play";
import { PolicyTrial } from "./policies";
import { go, groupOf, groupPart, link, useRoute, type Route } from "./route";
import { asCurl, asKubectl, asPython } from "./said";
import { Schema } from "./schema";
import { SchemaVersions } from "./versions";
import { applyTheme, settings, store } from "./settings";
import { Objects } from "./table";
import { TimeLine, TimePage } from "./timeline";

const VIEWS: [string[], string][] = [
  [["time"], "Changes"],
  [["play", "access"], "Access"],
  [["play", "policy"], "Policies"],
];

function App() {
  const [kinds, setKinds] = useState<Kind[]>();
  const [fault, setFault] = useState<unknown>();
  const [showsRequests, setShowsRequests] = useState(false);
  const [theme, setTheme] = useState(settings().theme);
  const route = useRoute();
  const load = () => {
    readAbout()
      .then(readKinds)
      .then((read) => {
        setKinds(read);
        setFault(undefined);
      }, setFault);
  };
  useEffect(load, []);
  useEffect(() => {
    const name = route.parts.slice(1).join(" ");
    document.title = name ? `${name} – Explorer` : "Explorer";
  }, [route]);
  const mustLogIn = about.login && fault instanceof Refusal && (fault.code === 401 || fault.code === 403);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        To the content
      </a>
      <header>
        <a class="brand" href={link([])}>
          Explorer
        </a>
        <span class="server">{about.server}</span>
        <nav aria-label="Views of the cluster">
          {VIEWS.map(([parts, text]) => (
            <a key={text} href={link(parts)} aria-current={parts.every((part, index) => route.parts[index] === part) ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <button type="button" aria-expanded={showsRequests} onClick={() => setShowsRequests(!showsRequests)}>
          Requests
        </button>
        <label>
          Theme{" "}
          <select
            value={theme}
            onChange={(event) => {
              const chosen = event.currentTarget.value as typeof theme;
              setTheme(chosen);
              store({ theme: chosen });
            }}
          >
            <option value="system">system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
      </header>
      <div class="frame">
        {kinds && <Sidebar kinds={kinds} route={route} />}
        <main id="main" tabIndex={-1}>
          {!key && <Problem fault={new Error("The address has no key: open the one that the explorer printed.")} />}
          {mustLogIn ? <Login onToken={load} fault={fault} /> : <Problem fault={fault} />}
          {!kinds && !fault && <p>Reading what the cluster serves…</p>}
          {kinds && <View kinds={kinds} route={route} />}
        </main>
      </div>
      {showsRequests && <Requests />}
    </>
  );
}

function View({ kinds, route }: { kinds: Kind[]; route: Route }) {
  const [what, group, plural, namespace, name] = route.parts;
  const kind = useMemo(() => kinds.find((each) => each.plural === plural && each.group === groupOf(group)), [kinds, group, plural]);
  if (what === "time") return <TimePage kinds={kinds} route={route} />;
  if (what === "play" && group === "access") return <Access route={route} />;
  if (what === "play" && group === "policy") return <PolicyTrial kinds={kinds} />;
  if ((what === "kind" || what === "object") && !kind) return <Problem fault={new Error(`The cluster serves no ${plural} of ${group}.`)} />;
  if (what === "kind") return <KindPage key={`${group}/${plural}`} kind={kind!} route={route} />;
  if (what === "object" && name)
    return <ObjectPage key={route.parts.join("/")} kind={kind!} namespace={namespace === "-" ? "" : (namespace ?? "")} name={name} route={route} />;
  return <Home kinds={kinds} />;
}

function Home({ kinds }: { kinds: Kind[] }) {
  return (
    <article>
      <h1>{kinds.length} kinds</h1>
      <p class="doc">
        <kbd>/</kbd> searches kinds. In a table <kbd>↑</kbd> <kbd>↓</kbd> choose a row and <kbd>Enter</kbd> opens it.
      </p>
      <ul class="groups">
        {inGroups(kinds).map(([group, those]) => (
          <li key={group}>
            <h2>{group || "core"}</h2>
            {those.map((kind) => (
              <a key={kind.plural} href={link(["kind", groupPart(group), kind.plural])}>
                {kind.kind}
              </a>
            ))}
          </li>
        ))}
      </ul>
    </article>
  );
}

function Sidebar({ kinds, route }: { kinds: Kind[]; route: Route }) {
  const [search, setSearch] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== "/" || target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) return;
      input.current?.focus();
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const shown = useMemo(() => matching(kinds, search.trim()), [kinds, search]);
  const leave = () => document.getElementById("main")?.focus();
  return (
    <nav class="sidebar" aria-label="Kinds">
      <input
        ref={input}
        type="search"
        aria-label="Search kinds"
        placeholder="Search kinds ( / )"
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          const first = shown[0];
          if (event.key !== "Enter" || !first) return;
          go(["kind", groupPart(first.group), first.plural]);
          leave();
        }}
      />
      <div class="kinds">
        {inGroups(shown).map(([group, those], index) => (
          <section key={`${group}/${index}`} aria-label={group || "core"}>
            <h2>{group || "core"}</h2>
            <ul>
              {those.map((kind) => (
                <li key={kind.plural}>
                  <a
                    href={link(["kind", groupPart(kind.group), kind.plural])}
                    title={kind.kind}
                    onClick={leave}
                    aria-current={route.parts[1] === groupPart(kind.group) && route.parts[2] === kind.plural ? "page" : undefined}
                  >
                    {kind.kind}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {shown.length === 0 && <p class="doc">No kind has these words.</p>}
      </div>
    </nav>
  );
}

/** Kinds that follow each other and are of one group, together. */
function inGroups(kinds: Kind[]): [string, Kind[]][] {
  const out: [string, Kind[]][] = [];
  for (const kind of kinds) {
    const last = out[out.length - 1];
    if (last && last[0] === kind.group) last[1].push(kind);
    else out.push([kind.group, [kind]]);
  }
  return out;
}

function KindPage({ kind, route }: { kind: Kind; route: Route }) {
  const canList = kind.verbs.includes("list");
  const tab = route.query.get("tab") ?? (canList ? "objects" : "schema");
  const version = route.query.get("version") ?? kind.version;
  const namespace = route.query.get("ns") ?? "";
  const labels = route.query.get("labels") ?? "";
  const query = Object.fromEntries(route.query);
  const tabs: [string, string][] = [...(canList ? ([["objects", "Objects"], ["time", "Time"]] as [string, string][]) : []), ["schema", "Schema"], ...(kind.versions.length > 1 ? ([["versions", "Versions"]] as [string, string][]) : []), ["about", "Verbs"]];
  return (
    <article>
      <h1>
        {kind.kind} <small>{apiVersion(kind)}</small>
      </h1>
      <Tabs tabs={tabs} current={tab} label="Views of the kind" to={(each) => link(route.parts, { ...query, tab: each })} />
      {kind.namespaced && (tab === "objects" || tab === "time") && (
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault();
            go(route.parts, { ...query, ns: String(new FormData(event.currentTarget as HTMLFormElement).get("ns") ?? "") });
          }}
        >
          <label>
            Namespace <input name="ns" defaultValue={namespace} placeholder="all" />
          </label>
          <button>Show</button>
        </form>
      )}
      {tab === "objects" && canList && <Objects kind={kind} route={route} />}
      {tab === "time" && <TimeLine key={`${namespace} ${labels}`} kinds={[kind]} namespace={namespace} labels={labels} />}
      {tab === "schema" && (
        <>
          {kind.versions.length > 1 && (
            <Tabs
              tabs={kind.versions.map((each) => [each, each])}
              current={version}
              label="Versions"
              to={(each) => link(route.parts, { ...query, tab: "schema", version: each })}
            />
          )}
          <Schema kind={kind} version={version} />
        </>
      )}
      {tab === "versions" && <SchemaVersions kind={kind} />}
      {tab === "about" && <Verbs kind={kind} />}
    </article>
  );
}

function Verbs({ kind }: { kind: Kind }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Resource</th>
          <th scope="col">Verbs</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <td>{kind.plural}</td>
          <td>{kind.verbs.join(", ")}</td>
        </tr>
        {kind.subresources.map((each) => (
          <tr key={each.name}>
            <td>
              {kind.plural}/{each.name}
            </td>
            <td>{each.verbs.join(", ")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Logs in with the user's own token, typed or out of a kubeconfig. It stays in memory. */
function Login({ onToken, fault }: { onToken: () => void; fault: unknown }) {
  const [wrong, setWrong] = useState("");
  const [tries, setTries] = useState(0);
  const fromFile = async (file: File | undefined) => {
    if (!file) return;
    const read = await ask("read", { text: await file.text() });
    const config: Json = read.value ?? {};
    const context = (config.contexts ?? []).find((each: Json) => each.name === config["current-context"])?.context;
    const user = (config.users ?? []).find((each: Json) => each.name === context?.user)?.user;
    if (!user?.token) {
      setWrong("The current user of this kubeconfig has no token in it; run kubewright explore with it instead.");
      return;
    }
    logIn(user.token);
    onToken();
  };
  return (
    <form
      class="login"
      onSubmit={(event) => {
        event.preventDefault();
        setTries(tries + 1);
        logIn(String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim());
        onToken();
      }}
    >
      <h1>Log in to {about.server}</h1>
      {tries > 0 && (
        <p class="problem" role="alert">
          {fault instanceof Error ? fault.message : ""}
        </p>
      )}
      <label>
        Your token <input name="token" type="password" autocomplete="off" required />
      </label>
      <button class="primary">Log in</button>
      <label>
        or your kubeconfig, if it has a token{" "}
        <input type="file" onChange={(event) => fromFile(event.currentTarget.files?.[0]).catch((caught) => setWrong(String(caught)))} />
      </label>
      <p role="alert">{wrong}</p>
      <p class="doc">The token stays in the memory of this page, and goes to this server only. kubewright serve writes one into the kubeconfig.</p>
    </form>
  );
}

function Requests() {
  const [, renew] = useState(0);
  const [chosen, setChosen] = useState<Sent | null>(null);
  useEffect(() => onRequest(() => renew((turn) => turn + 1)), []);
  return (
    <section class="requests" aria-label="Requests">
      <ul tabIndex={0} aria-label="Requests, newest first">
        {requests().map((each, index) => (
          <li key={requests().length - index}>
            <button type="button" aria-pressed={chosen === each} onClick={() => setChosen(each)}>
              {each.code ?? "…"} {each.method} {each.path.slice(0, 300)}
            </button>
          </li>
        ))}
      </ul>
      {chosen && (
        <dl>
          {[
            ["curl", asCurl(chosen)],
            ["kubectl", asKubectl(chosen)],
            ["Python", asPython(chosen)],
          ].map(([name, text]) => (
            <div key={name}>
              <dt>
                {name}{" "}
                <button type="button" onClick={() => void navigator.clipboard?.writeText(text!)}>
                  copy
                </button>
              </dt>
              <dd>
                <pre tabIndex={0}>{text}</pre>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

applyTheme(settings().theme);
render(<App />, document.getElementById("app")!);
