/** An object as a form: a field for each value, and what was changed as a JSON patch, tried first. */

import { useMemo, useState } from "preact/hooks";
import { Refusal, ask, cluster, withQuery, type Json } from "./api";
import { Difference, Problem, cut } from "./parts";
import { asNew } from "./time";

const MOST_FIELDS = 300;

interface Leaf {
  pointer: string;
  label: string;
  value: string | number | boolean;
}

/** The values that somebody may change, with their JSON pointers. */
function leavesOf(value: unknown, pointer = "", label = "", out: Leaf[] = []): Leaf[] {
  if (value !== null && typeof value === "object") {
    for (const [name, below] of Object.entries(value)) {
      const part = name.replaceAll("~", "~0").replaceAll("/", "~1");
      leavesOf(below, `${pointer}/${part}`, Array.isArray(value) ? `${label}[${name}]` : label ? `${label}.${name}` : name, out);
    }
  } else if (value !== null && value !== undefined) out.push({ pointer, label, value: value as Leaf["value"] });
  return out;
}

export function Form({ object, path, onWritten }: { object: Json; path: string; onWritten: (object: Json) => void }) {
  const [changed, setChanged] = useState<Record<string, Leaf["value"]>>({});
  const [search, setSearch] = useState("");
  const [lines, setLines] = useState<Json[] | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const leaves = useMemo(() => leavesOf(asNew(object)).filter((leaf) => !["apiVersion", "kind"].includes(leaf.label)), [object]);
  const shown = leaves.filter((leaf) => leaf.label.toLowerCase().includes(search.toLowerCase()));
  const faults = new Map<string, string>(
    fault instanceof Refusal ? fault.causes.map((cause) => [cause.field ?? "", cause.message ?? ""]) : [],
  );
  const set = (leaf: Leaf, value: Leaf["value"]) => {
    const { [leaf.pointer]: _, ...rest } = changed;
    setChanged(value === leaf.value ? rest : { ...rest, [leaf.pointer]: value });
  };
  const send = async (dryRun: boolean) => {
    setFault(null);
    setLines(null);
    // Whoever wrote meanwhile is not overwritten: the version that is shown is a condition.
    const patch = [
      { op: "test", path: "/metadata/resourceVersion", value: object.metadata?.resourceVersion },
      ...Object.entries(changed).map(([pointer, value]) => ({ op: "replace", path: pointer, value })),
    ];
    const query = { fieldManager: "kubewright-explorer", fieldValidation: "Strict", dryRun: dryRun ? "All" : undefined };
    try {
      const { value } = await cluster(withQuery(path, query), {
        method: "PATCH",
        type: "application/json-patch+json",
        body: JSON.stringify(patch),
      });
      setLines((await ask("difference", { before: object, after: value })).lines);
      if (!dryRun) {
        setChanged({});
        onWritten(value);
      }
    } catch (caught) {
      setFault(caught);
    }
  };
  const count = Object.keys(changed).length;
  return (
    <form
      class="form"
      aria-label="Form"
      onSubmit={(event) => {
        event.preventDefault();
        void send(true);
      }}
    >
      <div class="filters">
        <label>
          Fields with <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <button class="primary" disabled={!count}>
          Try it (dry run)
        </button>
        <button type="button" disabled={!count || !lines} onClick={() => void send(false)}>
          Write it
        </button>
        <output>{count} changed</output>
      </div>
      <Problem fault={fault} />
      {lines && <Difference lines={lines} label="Difference" />}
      <div class="inputs">
        {shown.slice(0, MOST_FIELDS).map((leaf) => (
          <label key={leaf.pointer} class={leaf.pointer in changed ? "changed" : ""}>
            <code>{cut(leaf.label)}</code>
            <Input leaf={leaf} value={changed[leaf.pointer] ?? leaf.value} onValue={(value) => set(leaf, value)} />
            {faults.has(leaf.label) && <span class="bad">{cut(faults.get(leaf.label)!)}</span>}
          </label>
        ))}
      </div>
      {shown.length > MOST_FIELDS && <p>and {shown.length - MOST_FIELDS} more: narrow them down above.</p>}
    </form>
  );
}

function Input({ leaf, value, onValue }: { leaf: Leaf; value: Leaf["value"]; onValue: (value: Leaf["value"]) => void }) {
  if (typeof leaf.value === "boolean")
    return <input type="checkbox" checked={value === true} onChange={(event) => onValue(event.currentTarget.checked)} />;
  if (typeof leaf.value === "number")
    return (
      <input
        type="number"
        step="any"
        value={value as number}
        onInput={(event) => !Number.isNaN(event.currentTarget.valueAsNumber) && onValue(event.currentTarget.valueAsNumber)}
      />
    );
  const text = String(value);
  if (text.length > 2_000) return <small>{text.length} characters: use Edit</small>;
  return text.includes("\n") ? (
    <textarea rows={3} value={text} onInput={(event) => onValue(event.currentTarget.value)} />
  ) : (
    <input value={text} onInput={(event) => onValue(event.currentTarget.value)} />
  );
}
