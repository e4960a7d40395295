/** Names of fields: as conflicts say them (`.spec.ports[port=80].name`), as causes do (`spec.ports[0].name`). */

type Segment = string | number | { keys: [string, unknown][] } | { item: unknown };

function segments(path: string): Segment[] {
  const out: Segment[] = [];
  let at = 0;
  while (at < path.length) {
    if (path[at] === ".") {
      const end = path.slice(at + 1).search(/[.[]/);
      const stop = end < 0 ? path.length : at + 1 + end;
      out.push(path.slice(at + 1, stop));
      at = stop;
    } else if (path[at] === "[") {
      const stop = closing(path, at);
      out.push(inBrackets(path.slice(at + 1, stop)));
      at = stop + 1;
    } else return out;
  }
  return out;
}

/** The bracket that closes the one at `at`, outside of quotes. */
function closing(path: string, at: number): number {
  let inQuotes = false;
  for (let i = at + 1; i < path.length; i++) {
    if (path[i] === "\\" && inQuotes) i++;
    else if (path[i] === '"') inQuotes = !inQuotes;
    else if (path[i] === "]" && !inQuotes) return i;
  }
  return path.length;
}

function inBrackets(text: string): Segment {
  if (/^\d+$/.test(text)) return Number(text);
  if (text.startsWith("=")) return { item: parsed(text.slice(1)) };
  const keys = [...text.matchAll(/([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)/g)];
  return { keys: keys.map((match) => [match[1]!, parsed(match[2]!)]) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A path of a conflict as the field of a document: list items by their index there. The part that the document has. */
export function fieldIn(path: string, document: any): string {
  let value = document;
  let field = "";
  for (const segment of segments(path)) {
    if (typeof segment === "string") {
      if (value === null || typeof value !== "object" || !(segment in value)) return field;
      value = value[segment];
      field = field ? `${field}.${segment}` : segment;
      continue;
    }
    if (!Array.isArray(value)) return field;
    const index =
      typeof segment === "number"
        ? segment
        : value.findIndex((each) =>
            "item" in segment
              ? JSON.stringify(each) === JSON.stringify(segment.item)
              : segment.keys.every(([name, wanted]) => each?.[name] === wanted),
          );
    if (index < 0 || index >= value.length) return field;
    value = value[index];
    field = `${field}[${index}]`;
  }
  return field;
}

/** The line of a field, or of the nearest part of it that is written; 1 where nothing of it is. */
export function lineOf(field: string, lines: Record<string, number>): number {
  let at = field.replace(/^\./, "");
  while (at) {
    if (lines[at]) return lines[at]!;
    at = at.replace(/(\.[^.[\]]*|\[[^\]]*\]|^[^.[\]]+)$/, "");
  }
  return 1;
}
