/** Versions side by side: the schemas of a kind, and an object at each version that is served. */

import { useMemo, useState } from "preact/hooks";
import { ask, cluster, type Json } from "./api";
import { apiVersion, pathOf, type Kind } from "./kinds";
import { Problem, Virtual, cut, useLoaded } from "./parts";
import { factsOf, inner, resolved, schemaOf, typeOf } from "./schema";

/** What stands in one line: a text for each version, empty where that version has nothing there. */
interface Line {
  texts: string[];
  differs: boolean;
}

const LINE = 24;

/** Columns of one line each, with what differs marked. */
function SideBySide({ names, lines, label }: { names: string[]; lines: Line[]; label: string }) {
  const differing = lines.filter((line) => line.differs).length;
  const [all, setAll] = useState(false);
  const shown = useMemo(() => (all || !differing ? lines : withParents(lines)), [lines, all]);
  const template = `1.4rem repeat(${names.length}, minmax(16rem, 1fr))`;
  return (
    <section aria-label={label} class="difference">
      <p>
        <output data-testid="differing">{differing ? `${differing} of ${lines.length} lines differ.` : "Nothing differs."}</output>{" "}
        {differing > 0 && (
          <label>
            <input type="checkbox" checked={all} onChange={() => setAll(!all)} /> all lines
          </label>
        )}
      </p>
      <Virtual
        count={shown.length}
        row={LINE}
        role="grid"
        columns={names.length + 1}
        label={label}
        className="code beside"
        head={
          <div role="row" class="head" style={{ gridTemplateColumns: template }} aria-rowindex={1}>
            <span role="columnheader" aria-label="Differs" />
            {names.map((name) => (
              <span key={name} role="columnheader">
                {name}
              </span>
            ))}
          </div>
        }
        render={(index) => {
          const line = shown[index]!;
          return (
            <div key={index} role="row" aria-rowindex={index + 2} class={`row ${line.differs ? "differs" : ""}`} style={{ gridTemplateColumns: template }}>
              <span role="gridcell">{line.differs ? <span aria-label="differs">≠</span> : ""}</span>
              {line.texts.map((text, column) => (
                <code key={column} role="gridcell" class={text ? "" : "absent"} title={text.length > 40 ? cut(text) : undefined}>
                  {cut(text)}
                </code>
              ))}
            </div>
          );
        }}
      />
    </section>
  );
}

/** The lines that differ, each with those that it is below. */
function withParents(lines: Line[]): Line[] {
  const keep = new Set<number>();
  const above: { depth: number; at: number }[] = [];
  lines.forEach((line, at) => {
    const text = line.texts.find(Boolean) ?? "";
    const depth = text.search(/[^ ]/) + (text.trimStart().startsWith("- ") ? 1 : 0);
    while (above.length && above[above.length - 1]!.depth >= depth) above.pop();
    if (line.differs) for (const each of [...above, { at }]) keep.add(each.at);
    above.push({ depth, at });
  });
  return lines.filter((_, at) => keep.has(at));
}

const MOST_FIELDS = 5_000;
const DEEPEST = 14;

interface At {
  version: number;
  schema: Json;
  schemas: Json;
  required: boolean;
}

/** The fields of all versions as lines, each at its place. What only some versions have is not followed further down. */
function fieldLines(places: At[], count: number, depth: number, name: string, out: Line[]): void {
  if (out.length > MOST_FIELDS || depth > DEEPEST) return;
  if (depth >= 0) {
    const texts = Array.from({ length: count }, () => "");
    for (const at of places) {
      const whole = resolved(at.schema, at.schemas);
      const facts = [typeOf(at.schema, at.schemas), at.required ? "required" : "", ...factsOf(whole)].filter(Boolean);
      const rules = (whole["x-kubernetes-validations"] ?? []).map((rule: Json) => `rule ${rule.rule}`);
      texts[at.version] = `${"  ".repeat(depth)}${name}: ${[...facts, ...rules].join(", ")}`;
    }
    out.push({ texts, differs: new Set(texts).size > 1 });
    if (places.length < count) return;
  }
  const below = places.map((at) => ({ ...at, whole: inner(at.schema, at.schemas) }));
  const names = new Set(below.flatMap(({ whole }) => Object.keys(whole.properties ?? {})));
  for (const each of [...names].sort()) {
    const those = below
      .filter(({ whole }) => whole.properties?.[each])
      .map(({ version, schemas, whole }) => ({ version, schemas, schema: whole.properties[each], required: (whole.required ?? []).includes(each) }));
    fieldLines(those, count, depth + 1, each, out);
  }
}

/** The schemas of all versions of a kind, field by field. */
export function SchemaVersions({ kind }: { kind: Kind }) {
  const { value, fault } = useLoaded(() => Promise.all(kind.versions.map((version) => schemaOf(kind, version))), [kind]);
  const lines = useMemo(() => {
    const out: Line[] = [];
    const places = (value ?? []).map(({ root, schemas }, version) => ({ version, schemas, schema: root, required: false }));
    fieldLines(places, places.length, -1, "", out);
    return out;
  }, [value]);
  if (fault) return <Problem fault={fault} />;
  if (!value) return <p>Reading the schemas…</p>;
  return (
    <>
      <p class="doc">
        Each field in each version that is served; the first is the preferred one.
        {lines.length > MOST_FIELDS && ` Only the first ${MOST_FIELDS} fields are compared.`}
      </p>
      <SideBySide names={kind.versions} lines={lines} label={`Versions of ${kind.kind}, field by field`} />
    </>
  );
}

/** The object at each version that is served. */
export function ObjectVersions({ kind, namespace, name, revision }: { kind: Kind; namespace: string; name: string; revision: string }) {
  const { value, fault } = useLoaded(
    async (signal) => {
      const read = async (version: string) => (await cluster(pathOf(kind, namespace, name, version), { signal })).value;
      return ask("beside", { objects: await Promise.all(kind.versions.map(read)) }, signal);
    },
    [kind, namespace, name, revision],
  );
  if (kind.versions.length < 2) return <p class="doc">{kind.kind} is served as {apiVersion(kind)} alone: there is nothing to convert it to.</p>;
  if (fault) return <Problem fault={fault} />;
  if (!value) return <p>Reading it at {kind.versions.join(", ")}…</p>;
  return (
    <>
      <p class="doc">As the server converts it. An empty place says that this version has no such field.</p>
      <SideBySide names={kind.versions} lines={value.lines as Line[]} label={`${kind.kind} ${name} at each version`} />
    </>
  );
}
