/** An object as a form: its values as fields, what its schema lets be added, and all changes as a JSON patch, tried first. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Refusal, ask, cluster, withQuery, type Json } from "./api";
import { addableTo, at, entriesOf, firstValue, isHolder, isInteger, isTyped, patchOf, put, same, without, type Addable, type Entry, type Path } from "./draft";
import type { Kind } from "./kinds";
import { Difference, Problem, cut, useLoaded } from "./parts";
import { schemaOf } from "./schema";
import { OF_SERVER, asNew } from "./time";

const MOST_FIELDS = 300;
const LONGEST = 2_000;

export function Form({ kind, object, path, onWritten }: { kind: Kind; object: Json; path: string; onWritten: (object: Json) => void }) {
  const [base, setBase] = useState(object);
  const [draft, setDraft] = useState(() => asNew(object));
  const [search, setSearch] = useState("");
  const [adding, setAdding] = useState("");
  const [lines, setLines] = useState<Json[] | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const { value: document, fault: schemaFault } = useLoaded(() => schemaOf(kind), [kind]);
  const schemas: Json = document?.schemas ?? {};
  const root: Json = document?.root ?? {};
  const entries = useMemo(() => entriesOf(draft, root, schemas), [draft, document]);
  const before = useMemo(() => asNew(base), [base]);
  const patch = useMemo(() => patchOf(before, draft), [before, draft]);
  const change = (changed: Json) => {
    setLines(null);
    setDraft(changed);
  };
  const begin = (from: Json) => {
    setBase(from);
    change(asNew(from));
    setFault(null);
  };
  // Others write too. What they change of the status alone is nothing to this form.
  const isStale = base !== object && !same(before, asNew(object));
  useEffect(() => {
    if (isStale ? !patch.length : base !== object) isStale ? begin(object) : setBase(object);
  }, [object]);

  const send = async (dryRun: boolean) => {
    setFault(null);
    setLines(null);
    // Whoever wrote meanwhile is not overwritten: the version that is shown is a condition.
    const body = [{ op: "test", path: "/metadata/resourceVersion", value: base.metadata?.resourceVersion }, ...patch];
    const query = { fieldManager: "kubewright-explorer", fieldValidation: "Strict", dryRun: dryRun ? "All" : undefined };
    try {
      const { value } = await cluster(withQuery(path, query), { method: "PATCH", type: "application/json-patch+json", body: JSON.stringify(body) });
      const { lines: differing } = await ask("difference", { before: base, after: value });
      if (!dryRun) {
        begin(value);
        onWritten(value);
      }
      setLines(differing);
    } catch (caught) {
      setFault(caught);
    }
  };
  const top: Entry = { path: [], label: "the object", value: draft, schema: root, required: true };
  const isKnown = document || schemaFault;
  const shown = [...(search ? [] : [top]), ...entries.filter((entry) => entry.label.toLowerCase().includes(search.toLowerCase()))];
  const faults = new Map<string, string>(fault instanceof Refusal ? fault.causes.map((cause) => [cause.field ?? "", cause.message ?? ""]) : []);
  return (
    <form
      class="form"
      aria-label="Form"
      onSubmit={(event) => {
        event.preventDefault();
        if (patch.length) void send(true);
      }}
    >
      <div class="filters">
        <label>
          Fields with <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <button class="primary" disabled={!patch.length}>
          Try it (dry run)
        </button>
        <button type="button" disabled={!patch.length || !lines} onClick={() => void send(false)}>
          Write it
        </button>
        <button type="button" disabled={!patch.length && !isStale} onClick={() => begin(object)}>
          Begin anew
        </button>
        <output>{patch.length} changed</output>
      </div>
      {isStale && <p class="warning" role="status">Somebody changed it meanwhile, so what is here cannot be written: begin anew.</p>}
      <Problem fault={fault} />
      {lines && <Difference lines={lines} label="Difference" />}
      <div class="inputs">
        {!isKnown && <p>Reading the schema…</p>}
        {shown.slice(0, isKnown ? MOST_FIELDS : 0).map((entry) => (
          <Row
            key={entry.path.join("\0")}
            entry={entry}
            isChanged={entry.path.length > 0 && !same(at(before, entry.path), entry.value)}
            fault={faults.get(entry.label) ?? ""}
            onValue={(value) => change(put(draft, entry.path, value))}
            onRemove={() => change(without(draft, entry.path))}
          >
            {adding === entry.label ? (
              <Add
                label={entry.label}
                addable={addableTo(entry, schemas, OF_SERVER)}
                onAdd={(part, schema, value) => {
                  const added: Path = [...entry.path, part ?? (entry.value as unknown[]).length];
                  change(put(draft, added, value ?? firstValue(schema, schemas)));
                  setAdding("");
                }}
                onEnd={() => setAdding("")}
              />
            ) : (
              <button type="button" aria-label={`Add to ${cut(entry.label)}`} onClick={() => setAdding(entry.label)}>
                Add…
              </button>
            )}
          </Row>
        ))}
      </div>
      {shown.length > MOST_FIELDS && <p>and {shown.length - MOST_FIELDS} more: narrow them down above.</p>}
    </form>
  );
}

interface RowProps {
  entry: Entry;
  isChanged: boolean;
  fault: string;
  onValue: (value: unknown) => void;
  onRemove: () => void;
  children: ComponentChildren;
}

function Row({ entry, isChanged, fault, onValue, onRemove, children }: RowProps) {
  const holds = isHolder(entry.value);
  const mayGo = entry.path.length > 1 || !["metadata", "spec"].includes(String(entry.path[0] ?? "metadata"));
  return (
    <div class={`entry ${holds ? "holder" : ""} ${isChanged ? "changed" : ""}`}>
      {holds ? (
        <code>{cut(entry.label)}</code>
      ) : (
        <label>
          <code>{cut(entry.label)}</code>
          <Input entry={entry} onValue={onValue} />
        </label>
      )}
      {holds && children}
      {mayGo && !entry.required && (
        <button type="button" aria-label={`Remove ${cut(entry.label)}`} title="Remove" onClick={onRemove}>
          ×
        </button>
      )}
      {fault && <span class="bad">{cut(fault)}</span>}
    </div>
  );
}

/** Types of values of which no schema says anything. */
const ANY: [string, unknown][] = [
  ["text", ""],
  ["number", 0],
  ["yes or no", false],
  ["map", {}],
  ["list", []],
];

interface AddProps {
  label: string;
  addable: Addable;
  onAdd: (part: string | undefined, schema: Json, value?: unknown) => void;
  onEnd: () => void;
}

/** Chooses what is added: a field of the schema, a key, or an item. */
function Add({ label, addable, onAdd, onEnd }: AddProps) {
  const { fields, keys, items } = addable;
  const [key, setKey] = useState("");
  const [field, setField] = useState("");
  const [type, setType] = useState(0);
  const chosen = fields.find((each) => each.name === field);
  const isUntyped = !chosen && !isTyped(items ?? keys ?? {});
  const isReady = items || chosen || (keys && key);
  const add = () => {
    if (chosen) onAdd(chosen.name, chosen.schema);
    else if (isReady) onAdd(items ? undefined : key, items ?? keys!, isUntyped ? ANY[type]![1] : undefined);
  };
  return (
    <span
      class="adding"
      role="group"
      aria-label={`What to add to ${cut(label)}`}
      onKeyDown={(event) => {
        if (event.key === "Escape") onEnd();
        else if (event.key === "Enter" && (event.target as HTMLElement).tagName !== "BUTTON") add();
        else return;
        event.preventDefault();
      }}
    >
      {fields.length > 0 && (
        <select autofocus aria-label="Field" value={field} onChange={(event) => setField(event.currentTarget.value)}>
          <option value="">{keys ? "another" : "choose"}</option>
          {fields.map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}: {each.type}
            </option>
          ))}
        </select>
      )}
      {keys && !chosen && <input autofocus aria-label="Key" placeholder="key" value={key} onInput={(event) => setKey(event.currentTarget.value)} />}
      {isUntyped && (items || keys) && (
        <select aria-label="Type" value={String(type)} onChange={(event) => setType(Number(event.currentTarget.value))}>
          {ANY.map(([name], index) => (
            <option key={name} value={String(index)}>
              {name}
            </option>
          ))}
        </select>
      )}
      {!fields.length && !keys && !items && <small>Its schema has no other field.</small>}
      <button type="button" disabled={!isReady} onClick={add}>
        {items ? "Add an item" : "Add"}
      </button>
      <button type="button" onClick={onEnd}>
        Cancel
      </button>
    </span>
  );
}

function Input({ entry: { value, schema }, onValue }: { entry: Entry; onValue: (value: unknown) => void }) {
  if (typeof value === "boolean") return <input type="checkbox" checked={value} onChange={(event) => onValue(event.currentTarget.checked)} />;
  const choices: unknown[] = Array.isArray(schema.enum) ? schema.enum : [];
  if (choices.length)
    return (
      <select value={String(value)} onChange={(event) => onValue(choices.find((each) => String(each) === event.currentTarget.value))}>
        {!choices.includes(value) && <option value={String(value)}>{cut(String(value))}</option>}
        {choices.map((each) => (
          <option key={String(each)} value={String(each)}>
            {String(each)}
          </option>
        ))}
      </select>
    );
  if (typeof value === "number" && !isInteger(schema))
    return (
      <input
        type="number"
        step="any"
        value={value}
        onInput={(event) => !Number.isNaN(event.currentTarget.valueAsNumber) && onValue(event.currentTarget.valueAsNumber)}
      />
    );
  const text = String(value);
  if (text.length > LONGEST) return <small>{text.length} characters: use Edit</small>;
  const taken = (typed: string) => onValue(isInteger(schema) && /^-?\d+$/.test(typed) ? Number(typed) : typed);
  return text.includes("\n") ? (
    <textarea rows={3} value={text} onInput={(event) => taken(event.currentTarget.value)} />
  ) : (
    <input value={text} onInput={(event) => taken(event.currentTarget.value)} />
  );
}
