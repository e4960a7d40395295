/** The place in the page, behind the key in the fragment: `#KEY/objects/apps/deployments?ns=shop`. */

import { useEffect, useState } from "preact/hooks";
import { key } from "./api";

export interface Route {
  parts: string[];
  query: URLSearchParams;
}

export function current(): Route {
  const text = location.hash.slice(1);
  const slash = text.indexOf("/");
  const [path, query] = (slash < 0 ? "" : text.slice(slash + 1)).split("?");
  return { parts: path ? path.split("/").map(safelyDecoded) : [], query: new URLSearchParams(query ?? "") };
}

function safelyDecoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a place. */
export function link(parts: string[], query: Record<string, string> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#${key}/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export function go(parts: string[], query: Record<string, string> = {}, replace = false): void {
  const target = link(parts, query);
  if (replace) {
    history.replaceState(null, "", target);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = target;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const changed = () => setRoute(current());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

/** A core group has no name; in addresses it is `core`. */
export const groupPart = (group: string) => group || "core";
export const groupOf = (part: string | undefined) => (part === "core" ? "" : (part ?? ""));
