// Looks at every page of the site in a frame, wide and narrow, light and dark, and writes down what is wrong.
const pages = PAGES;
const problems = [];
const texts = new Map();

async function source(path) {
  if (!texts.has(path)) texts.set(path, fetch(path).then((answer) => (answer.ok ? answer.text() : null)));
  return texts.get(path);
}

async function anchors(path) {
  const text = await source(path);
  if (text === null) return null;
  const page = new DOMParser().parseFromString(text, "text/html");
  return new Set([...page.querySelectorAll("[id], a[name]")].map((each) => each.id || each.getAttribute("name")));
}

function luminance([red, green, blue]) {
  const part = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
}

function colour(text) {
  const found = text.match(/[\d.]+/g);
  return found ? found.map(Number) : [0, 0, 0, 0];
}

function blend(front, back) {
  const share = front.length > 3 ? front[3] : 1;
  return [0, 1, 2].map((at) => front[at] * share + back[at] * (1 - share));
}

function background(view, element) {
  const layers = [];
  for (let each = element; each; each = each.parentElement) layers.push(colour(view.getComputedStyle(each).backgroundColor));
  return layers.reverse().reduce((below, above) => (above.length === 4 && above[3] === 0 ? below : blend(above, below)), [255, 255, 255]);
}

function contrast(view, element) {
  const behind = background(view, element);
  const front = blend(colour(view.getComputedStyle(element).color), behind);
  const [light, dark] = [luminance(front), luminance(behind)].sort((one, other) => other - one);
  return (light + 0.05) / (dark + 0.05);
}

async function load(frame, path, width) {
  frame.style.width = `${width}px`;
  await new Promise((done) => {
    frame.onload = done;
    frame.src = path;
  });
  return frame.contentWindow;
}

async function look(frame, path) {
  const say = (text) => problems.push(`${path}: ${text}`);
  for (const width of [1280, 390]) {
    const view = await load(frame, path, width);
    const root = view.document.documentElement;
    if (root.scrollWidth > view.innerWidth + 1) say(`wider than ${width}: ${root.scrollWidth}`);
    for (const each of view.document.querySelectorAll("article code"))
      if (!each.closest("pre") && /^(?=.{2,40}$)--?\w[\w.-]*(=[\w.,/-]*)?$/.test(each.textContent) && each.getClientRects().length > 1)
        say(`an option in parts at ${width}: ${each.textContent}`);
    if (width === 390) continue;
    for (const code of view.document.querySelectorAll(".language-console code")) {
      if (!code.querySelector(".gp")) continue;
      code.setAttribute("data-md-copying", "");
      const lines = code.innerText.trim().split("\n");
      code.removeAttribute("data-md-copying");
      if (lines.some((line) => !line.trim() || /^[$>] /.test(line))) say(`copied with more than what is typed: ${lines[0]}`);
      if (lines.some((line, at) => line.endsWith("\\") && (lines[at + 1] ?? "").trimStart() === "")) say(`a copied command is cut: ${lines[0]}`);
    }
    const body = view.document.querySelector("article") || view.document.body;
    const prose = body.cloneNode(true);
    prose.querySelectorAll("pre, code, script, style, svg").forEach((each) => each.remove());
    for (const [name, pattern] of [["raw Mermaid", /flowchart (TB|BT|LR|TD)/], ["raw Markdown", /```|\]\([\w./#-]+\)|^\|.*\|$/m]])
      if (pattern.test(prose.textContent)) say(name);
    if ([...body.querySelectorAll("td, td code")].some((each) => each.textContent.includes("\\|"))) say("an escaped bar in a table");
    if (!view.document.title || body.querySelectorAll("h1").length !== 1) say("not one title");
    body.querySelectorAll("img:not([alt]), img[alt='']").forEach((each) => say(`a picture without words: ${each.src}`));
    for (const scheme of ["default", "slate"]) {
      view.document.body.setAttribute("data-md-color-scheme", scheme);
      for (const each of body.querySelectorAll("p, li, td, th, h1, h2, h3, code, figcaption")) {
        if (!each.textContent.trim() || !each.offsetParent) continue;
        const ratio = contrast(view, each);
        if (ratio < 4.5 && !/^H[123]$/.test(each.tagName)) {
          say(`contrast ${ratio.toFixed(1)} (${scheme}): ${each.tagName} ${each.textContent.trim().slice(0, 40)}`);
          break;
        }
      }
    }
    const seen = new Set();
    for (const link of view.document.querySelectorAll("a[href]")) {
      const target = new URL(link.getAttribute("href"), view.location.href);
      if (target.origin !== location.origin || seen.has(target.href)) continue;
      seen.add(target.href);
      const known = await anchors(target.pathname);
      if (known === null) say(`a dead link: ${link.getAttribute("href")}`);
      else if (target.hash && target.hash !== "#" && !known.has(decodeURIComponent(target.hash.slice(1)))) say(`no anchor: ${link.getAttribute("href")}`);
    }
  }
}

(async () => {
  const frame = document.querySelector("iframe");
  for (const path of pages) {
    try {
      await look(frame, path);
    } catch (fault) {
      problems.push(`${path}: ${fault}`);
    }
  }
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ pages: pages.length, problems });
  document.body.append(result);
  fetch("/done", { method: "POST", body: result.textContent });
})();
