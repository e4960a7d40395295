/** An object line by line, each in the colour of whoever owns it. */

import { useMemo, useState } from "preact/hooks";
import { ask, type Json } from "./api";
import { Problem, Virtual, age, cut, useLoaded } from "./parts";

const MOST_MANAGERS = 200;
/** Lines per manager: hues that differ, in the order that managers come. The name stands beside, for who sees no hues. */
const HUES = [210, 30, 130, 280, 0, 180, 60, 320, 95, 240, 15, 160];

export function Owners({ object }: { object: Json }) {
  const { value, fault } = useLoaded((signal) => ask("lines", { object }, signal), [object]);
  const [manager, setManager] = useState(-1);
  const [line, setLine] = useState(-1);
  const [search, setSearch] = useState("");
  const managers: Json[] = value?.managers ?? [];
  const lines: Json[] = value?.lines ?? [];
  const shownManagers = useMemo(
    () => managers.map((each, index) => ({ each, index })).filter(({ each }) => each.manager.includes(search)),
    [value, search],
  );
  if (fault) return <Problem fault={fault} />;
  if (!value) return <p>Reading who owns what…</p>;
  const chosen = lines[line];
  return (
    <section class="owners" aria-label="Who owns what">
      <aside aria-label="Managers">
        <h3>Managers</h3>
        {managers.length > 12 && (
          <label>
            With <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          </label>
        )}
        <ul class="legend">
          {shownManagers.slice(0, MOST_MANAGERS).map(({ each, index }) => (
            <li key={index}>
              <button
                type="button"
                aria-pressed={manager === index}
                class="manager"
                style={{ "--hue": String(HUES[index % HUES.length]) }}
                onClick={() => setManager(manager === index ? -1 : index)}
              >
                <b>{cut(nameOf(each))}</b>
                <small>
                  {each.operation} · {each.apiVersion} · {each.time ? `${age(each.time)} ago` : "no time"} · {each.fields} {each.fields === 1 ? "field" : "fields"}
                </small>
              </button>
            </li>
          ))}
          {shownManagers.length > MOST_MANAGERS && <li>and {shownManagers.length - MOST_MANAGERS} more</li>}
          {managers.length === 0 && <li>Nobody: the object has no managedFields.</li>}
        </ul>
        {chosen && (
          <div class="chosen" role="status">
            <h3>
              <code>{cut(chosen.path || ".")}</code>
            </h3>
            <p>{describe(chosen, managers)}</p>
          </div>
        )}
      </aside>
      <Virtual
        count={lines.length}
        row={22}
        label="The object as YAML"
        className="code"
        current={line}
        onKey={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
          if (!step) return;
          setLine(Math.max(0, Math.min(lines.length - 1, line + step)));
          event.preventDefault();
        }}
        render={(index) => {
          const each = lines[index]!;
          const owner = each.owners[0];
          const names = each.owners.map((number: number) => nameOf(managers[number]!)).join(", ");
          const isOf = manager < 0 || each.owners.includes(manager);
          const kind = each.owners.length ? "owned" : each.below ? "holds" : "nobody";
          return (
            <div
              key={index}
              id={`row-${index}`}
              role="listitem"
              class={`line ${kind} ${isOf ? "" : "aside"} ${index === line ? "current" : ""}`}
              style={owner === undefined ? undefined : { "--hue": String(HUES[owner % HUES.length]) }}
              data-owners={cut(names)}
              onClick={() => setLine(index)}
            >
              <span class="margin" title={cut(names)}>
                {cut(names)}
              </span>
              <code>{cut(each.text)}</code>
            </div>
          );
        }}
      />
    </section>
  );
}

const nameOf = (manager: Json) => (manager.subresource ? `${manager.manager}/${manager.subresource}` : manager.manager);

function describe(line: Json, managers: Json[]): string {
  const say = (number: number) => {
    const each = managers[number]!;
    const since = each.time ? `, last written ${each.time} (${age(each.time)} ago)` : "";
    return `${cut(nameOf(each))} by ${each.operation} of ${each.apiVersion}${since}`;
  };
  if (line.owners.length)
    return `Owned ${line.whole ? "as a part of something that is owned as a whole " : ""}by ${line.owners.slice(0, 20).map(say).join("; ")}.`;
  if (line.below) return `Nobody owns it itself; what it holds is owned by ${line.below.slice(0, 20).map(say).join("; ")}.`;
  return "Nobody owns it: the server writes it, or it was there before fields were managed.";
}
