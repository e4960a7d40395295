/**
 * JSON of large objects. To write an object of some megabytes and to hand it to `fetch` takes some tenths of a second, in
 * which the page would answer to nobody: so it is written in stretches, with whatever waits between them, into Blobs, which
 * the browser holds and sends from where they are; and once for all questions about it.
 */

const STRETCH_MS = 25;
const PIECE = 1 << 17;
/** What is this deep is written at once. */
const DEEPEST = 4;
const LARGE = 100_000;
const sizes = new WeakMap<object, number>();
const blobs = new WeakMap<object, Blob>();

/** Notes how long the text of an object was as it was read. */
export function sized(value: object, length: number): void {
  sizes.set(value, length);
}

/** About how many characters an object has as JSON; 0 for those that came another way. */
export const sizeOf = (value: object) => sizes.get(value) ?? 0;

const nextTask = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

/** A large object begins or ends here. */
interface Bound {
  value: object;
  isEnd: boolean;
}

/** A value as JSON. */
export async function written(value: unknown): Promise<Blob> {
  const parts: Blob[] = [];
  const begun: number[] = [];
  let texts: string[] = [];
  let length = 0;
  let began = performance.now();
  const flush = () => {
    if (texts.length) parts.push(new Blob(texts));
    texts = [];
    length = 0;
  };
  for (const piece of pieces(value, 0)) {
    if (typeof piece === "string") {
      texts.push(piece);
      length += piece.length;
    } else {
      flush();
      if (piece instanceof Blob) parts.push(piece);
      else if (piece.isEnd) blobs.set(piece.value, new Blob(parts.slice(begun.pop())));
      else begun.push(parts.length);
    }
    if (length > PIECE) flush();
    if (performance.now() - began < STRETCH_MS) continue;
    await nextTask();
    began = performance.now();
  }
  flush();
  return new Blob(parts);
}

function* pieces(value: unknown, depth: number): Generator<string | Blob | Bound> {
  if (value === null || typeof value !== "object" || depth === DEEPEST) {
    yield JSON.stringify(value) ?? "null";
    return;
  }
  const isLarge = sizeOf(value) > LARGE;
  const known = isLarge ? blobs.get(value) : undefined;
  if (known) {
    yield known;
    return;
  }
  if (isLarge) yield { value, isEnd: false };
  const isList = Array.isArray(value);
  let before = isList ? "[" : "{";
  for (const [name, each] of Object.entries(value)) {
    if (each === undefined && !isList) continue;
    yield isList ? before : `${before}${JSON.stringify(name)}:`;
    yield* pieces(each, depth + 1);
    before = ",";
  }
  yield `${before === "," ? "" : before}${isList ? "]" : "}"}`;
  if (isLarge) yield { value, isEnd: true };
}
