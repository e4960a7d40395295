/**
 * Whether somebody looks. A browser opens six connections to one origin, over all of its tabs, and a watch takes one of them:
 * so a tab that nobody sees lets go of its watch after a while, and goes on from the same version when it is shown again.
 */

const PATIENCE = 5_000;

/** A signal that ends with `outer`, or when the page has been hidden for a while; `release` it when it is not needed any more. */
export function whileSeen(outer: AbortSignal): { signal: AbortSignal; release: () => void } {
  const made = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => made.abort(), PATIENCE);
  };
  const end = () => made.abort();
  document.addEventListener("visibilitychange", look);
  outer.addEventListener("abort", end);
  look();
  return {
    signal: made.signal,
    release: () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
      outer.removeEventListener("abort", end);
      made.abort();
    },
  };
}

/** Returns when the page is seen, or `outer` ends. */
export function seenAgain(outer: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || outer.aborted) return resolve();
    const look = () => {
      if (document.hidden && !outer.aborted) return;
      document.removeEventListener("visibilitychange", look);
      outer.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    outer.addEventListener("abort", look);
  });
}
