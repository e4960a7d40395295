"""Plots as SVG: horizontal bars in groups, and lines over growing numbers. Equal data gives equal bytes.

A plot brings its own background, so that it can be read on light and dark pages, and says below the data what was
measured on what and how to repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, LINE, BAR, GAP = 900, 380, 90, 17, 15, 12
COLOURS = ("#3f51b5", "#e08a1e", "#2a9d8f", "#b0413e", "#7a7a7a", "#8e5ea2")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.h{font-size:15px;font-weight:600}.n{fill:#555}"
    ".e{text-anchor:end}.g{stroke:#ddd}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What every plot says. ``series`` are the names of what is compared, in order."""

    title: str
    unit: str
    series: Sequence[str]
    notes: Sequence[str]


def bars(plot: Plot, rows: Sequence[tuple[str, Sequence[float]]]) -> str:
    """A group of bars for each row, a bar for each of its values; the longest reaches the edge, and
    where others were too short to be seen the scale is logarithmic."""
    values = [value for _, group in rows for value in group]
    logarithmic = max(values) > 50 * min(values)
    low = 10 ** math.floor(math.log10(min(values))) / 2 if logarithmic else 0.0

    def length(value: float) -> float:
        part = math.log(value / low) / math.log(max(values) / low) if logarithmic else value / max(values)
        return part * (WIDTH - LEFT - RIGHT)

    y, body = float(34 + LINE * 2), [*_legend(plot)]
    for label, group in rows:
        middle = y + len(group) * BAR / 2 + 4
        body.append(_text(LEFT - 8, middle, label, "e"))
        for number, value in enumerate(group):
            body.append(_bar(y, length(value), number))
            body.append(_text(LEFT + length(value) + 5, y + 11, shown(value), "n"))
            y += BAR
        y += GAP
    scale = f"{plot.unit}{', logarithmic scale' if logarithmic else ''}"
    return _page(plot, scale, body, y)


def lines(plot: Plot, rows: Sequence[Sequence[tuple[float, float]]]) -> str:
    """A line for each of the series, both scales logarithmic."""
    xs = [x for row in rows for x, _ in row]
    ys = [y for row in rows for _, y in row]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)))
    top, bottom, left, right = 34 + LINE * (len(plot.series) + 1), 0, 80, WIDTH - 40
    bottom = top + 300

    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / min(xs)) / math.log(max(xs) / min(xs))
        up = math.log(y / low) / math.log(high / low)
        return left + across * (right - left), bottom - up * (bottom - top)

    body = [*_legend(plot, each_below=True)]
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        _, y = place(min(xs), 10.0**power)
        body.append(f'<line class="g" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        body.append(_text(left - 8, y + 4, shown(10.0**power), "e n"))
    body += [_text(place(x, low)[0], bottom + LINE, f"{x:,.0f}", "e n") for x in sorted(set(xs))]
    for number, row in enumerate(rows):
        points = [place(x, y) for x, y in row]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = COLOURS[number % len(COLOURS)]
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return _page(plot, f"{plot.unit}, by N; both scales logarithmic", body, bottom + 2 * LINE)


def shown(value: float) -> str:
    """Three figures, and no more than the number has."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _legend(plot: Plot, *, each_below: bool = False) -> list[str]:
    out, x, y = [], 20.0, 34 + LINE - 5
    for number, name in enumerate(plot.series):
        colour = COLOURS[number % len(COLOURS)]
        out.append(f'<rect x="{x:.0f}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        out.append(_text(x + 15, y, name, ""))
        if each_below:
            y += LINE
        else:
            x += 35 + 7 * len(name)
    return out


def _bar(y: float, length: float, number: int) -> str:
    colour = COLOURS[number % len(COLOURS)]
    return f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(text)}</text>'


def _page(plot: Plot, scale: str, body: Sequence[str], y: float) -> str:
    notes = [scale, *plot.notes]
    height = y + LINE * (len(notes) + 1)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">\n'
        f"<title>{escape(plot.title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height:.0f}" rx="6" fill="#fdfdfd"/>'
    )
    below = [_text(20, y + LINE * (number + 1), note, "n") for number, note in enumerate(notes)]
    return "\n".join([head, _text(20, 24, plot.title, "h"), *body, *below, "</svg>\n"])
