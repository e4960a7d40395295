/** What the browser stores: settings, and nothing of any cluster. */

const NAME = "kubewright-explorer";

export interface Settings {
  theme: "system" | "light" | "dark";
}

export function settings(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(NAME) ?? "{}");
    return { theme: ["light", "dark"].includes(stored.theme) ? stored.theme : "system" };
  } catch {
    return { theme: "system" };
  }
}

export function store(changed: Settings): void {
  localStorage.setItem(NAME, JSON.stringify(changed));
  applyTheme(changed.theme);
}

export function applyTheme(theme: Settings["theme"]): void {
  document.documentElement.dataset.theme = theme;
}
