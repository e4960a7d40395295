"""Mermaid flowcharts of the documentation as SVG, drawn when the site is built: no script, no network.

It reads what the documents use: ``a --> b[words] & c``, ``a -. words .-> b``, ``subgraph name["title"]``. Nodes stand in
layers by the longest way to them, ordered so that few arrows cross; arrows are curves between the layers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape

_NODE = re.compile(r"\s*([\w./-]+)\s*(?:\(\[(.*?)\]\)|\[\((.*?)\)\]|\[\"?(.*?)\"?\]|\((.*?)\))?\s*")
_ARROW = re.compile(r"\s*(?:-->|-\.\s*(.*?)\s*\.->|--\s*(.*?)\s*-->)\s*")
CHAR, HEIGHT, ACROSS, BETWEEN = 7.4, 34, 26, 64


@dataclass(slots=True)
class Flowchart:
    """Nodes by id with their words, arrows with theirs, and groups of nodes."""

    downwards: bool
    upwards: bool = False
    nodes: dict[str, str] = field(default_factory=dict)
    arrows: list[tuple[str, str, str]] = field(default_factory=list)
    groups: list[tuple[str, list[str]]] = field(default_factory=list)


def parse(text: str) -> Flowchart:
    """A flowchart. Raises ValueError for lines that are none of one."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    head = lines[0].split()
    if head[0] != "flowchart":
        raise ValueError(f"no flowchart: {lines[0]}")
    chart = Flowchart(downwards=head[1] in ("TB", "TD", "BT"), upwards=head[1] == "BT")
    open_groups: list[list[str]] = []
    for line in lines[1:]:
        if found := re.match(r"subgraph\s+[\w-]+(?:\[\"?(.*?)\"?\])?", line):
            chart.groups.append((found[1] or line.split()[1], []))
            open_groups.append(chart.groups[-1][1])
        elif line == "end":
            open_groups.pop()
        else:
            _statement(line, chart, open_groups[-1] if open_groups else None)
    return chart


def _statement(line: str, chart: Flowchart, group: list[str] | None) -> None:
    before: list[str] = []
    words, at = "", 0
    while at < len(line):
        found: list[str] = []
        while True:
            node = _NODE.match(line, at)
            if node is None or not node[1]:
                raise ValueError(f"no node at {line[at:]!r}")
            name = node[1]
            label = next((each for each in node.groups()[1:] if each), None)
            if label or name not in chart.nodes:
                chart.nodes[name] = label or name
            if group is not None and name not in group:
                group.append(name)
            found.append(name)
            at = node.end()
            if line[at : at + 1] != "&":
                break
            at += 1
        chart.arrows += [(one, other, words) for one in before for other in found]
        before = found
        arrow = _ARROW.match(line, at)
        if arrow is None:
            break
        words, at = arrow[1] or arrow[2] or "", arrow.end()


def _layers(chart: Flowchart) -> list[list[str]]:
    depth = dict.fromkeys(chart.nodes, 0)
    for _ in chart.nodes:  # a circle ends with the number of nodes
        moved = False
        for one, other, _words in chart.arrows:
            if depth[other] < depth[one] + 1 <= len(chart.nodes) and not _reaches(chart, other, one):
                depth[other], moved = depth[one] + 1, True
        if not moved:
            break
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name, at in depth.items():
        layers[at].append(name)
    for _ in range(8):
        for before, layer in zip(layers, layers[1:], strict=False):
            place = {name: index for index, name in enumerate(before)}
            layer.sort(key=lambda name: _mean([place[a] for a, b, _w in chart.arrows if b == name and a in place]))
    return layers


def _reaches(chart: Flowchart, start: str, goal: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        if name == goal:
            return True
        new = {b for a, b, _words in chart.arrows if a == name} - seen
        seen |= new
        waiting += new
    return False


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def draw(text: str) -> str:
    """The flowchart as SVG, in the colours of the page. Raises ValueError."""
    chart = parse(text)
    layers = _layers(chart)
    if chart.upwards:
        layers.reverse()
    width = {name: max(40.0, len(label) * CHAR + 22) for name, label in chart.nodes.items()}
    box: dict[str, tuple[float, float]] = {}
    if chart.downwards:
        rows = [sum(width[name] + ACROSS for name in layer) - ACROSS for layer in layers]
        whole = max(rows) + 20, len(layers) * (HEIGHT + BETWEEN) - BETWEEN + 20
        for number, (layer, row) in enumerate(zip(layers, rows, strict=True)):
            x = (whole[0] - row) / 2
            for name in layer:
                box[name] = x, 10 + number * (HEIGHT + BETWEEN)
                x += width[name] + ACROSS
    else:
        columns = [max(width[name] for name in layer) for layer in layers]
        tallest = max(map(len, layers)) * (HEIGHT + ACROSS) - ACROSS
        whole = sum(columns) + BETWEEN * (len(layers) - 1) + 20, tallest + 20
        x = 10.0
        for layer, column in zip(layers, columns, strict=True):
            y = 10 + (tallest - (len(layer) * (HEIGHT + ACROSS) - ACROSS)) / 2
            for name in layer:
                box[name] = x + (column - width[name]) / 2, y
                y += HEIGHT + ACROSS
            x += column + BETWEEN
    parts = [_arrow(chart, width, box, arrow) for arrow in chart.arrows]
    for name, (x, y) in box.items():
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{width[name]:.0f}" height="{HEIGHT}" rx="6"/>')
        middle = x + width[name] / 2
        parts.append(f'<text x="{middle:.0f}" y="{y + 22:.0f}">{escape(chart.nodes[name])}</text>')
    titles = "; ".join(title for title, _members in chart.groups) or "a diagram"
    return (
        f'<svg class="diagram" role="img" aria-label="{escape(titles, quote=True)}" '
        f'viewBox="0 0 {whole[0]:.0f} {whole[1]:.0f}" style="max-width: {whole[0]:.0f}px" '
        'xmlns="http://www.w3.org/2000/svg"><defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        + "".join(parts)
        + "</svg>"
    )


def _arrow(
    chart: Flowchart, width: dict[str, float], box: dict[str, tuple[float, float]], arrow: tuple[str, str, str]
) -> str:
    one, other, words = arrow
    (x1, y1), (x2, y2) = box[one], box[other]
    if chart.downwards:
        x1, x2 = x1 + width[one] / 2, x2 + width[other] / 2
        y1, y2 = (y1 + HEIGHT, y2) if y2 > y1 else (y1, y2 + HEIGHT)
        middle = (y1 + y2) / 2
        path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
    else:
        x1, x2 = (x1 + width[one], x2) if x2 > x1 else (x1, x2 + width[other])
        y1, y2 = y1 + HEIGHT / 2, y2 + HEIGHT / 2
        middle = (x1 + x2) / 2
        path = f"M{x1:.0f} {y1:.0f}C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    said = f'<text class="words" x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 4:.0f}">{escape(words)}</text>'
    dashed = ' stroke-dasharray="4 4"' if words else ""
    return f'<path class="arrow" d="{path}" marker-end="url(#tip)"{dashed}/>{said if words else ""}'
