"""``make bench-report``: measures, keeps figures in docs/pictures/benchmarks.json, draws them for docs/benchmarks.md.

    python -m tests.bench.report [PLOT …] [--reference DIR] [--draw] [--largest N]

PLOT is one of those below; without any all are measured. DIR belongs to a kube-apiserver that runs on this machine: it
has ``api.pid``, ``etcd.pid`` and ``tokens.csv``. ``--draw`` draws the kept figures again. Peers that are not installed
are left out, and so is the compiled build if dist/ has no wheel of ``make wheel-compiled`` for this Python.

All figures are CPU time (user and system) of those who do the work. Other load on the machine makes them larger, but
all sides of a plot alike, because they are measured by turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.bench import plots
from tests.bench.measuring import ROOT

from apimachinery.meta.version import VERSION

FIGURES = ROOT / "docs/pictures/benchmarks.json"
PAGE = ROOT / "docs/benchmarks.md"
BEGIN, END = "<!-- measured by make bench-report -->", "<!-- end of what was measured -->"
ROUNDS = 3
Figures = dict[str, Any]


def requests_alone(options: argparse.Namespace) -> Figures:
    """Requests in the API, by both builds."""
    from tests.packaging.compiled import unpacked

    names = ("compiled", "plain")
    rows: dict[str, dict[str, float]] = {}
    with unpacked(ROOT / "dist") as both:
        for _ in range(ROUNDS):
            for build, site in zip(names, (both.compiled, both.plain), strict=True):
                for line in both.run(site, "-m", "tests.bench.handler_costs").stdout.splitlines():
                    case, microseconds, _ = line.split()
                    held = rows.setdefault(case, {})
                    held[build] = min(held.get(build, float(microseconds)), float(microseconds))
    return {
        "title": "A request in the API alone",
        "unit": "µs of CPU a request",
        "series": names,
        "what": "One process, memory storage, no socket; both builds by turns, the least of three runs.",
        "rows": [[case, [by[build] for build in names]] for case, by in rows.items()],
    }


def builds(options: argparse.Namespace) -> Figures:
    """What mypyc compiles, by both builds."""
    from tests.packaging.compiled import times, unpacked

    with unpacked(ROOT / "dist") as both:
        measured = times(both)
    return {
        "title": "The compiled build and the plain one",
        "unit": "µs of CPU",
        "series": ["compiled", "plain"],
        "what": "Both builds of one wheel by turns, the least of five rounds of medians (make bench-compiled).",
        "rows": [[case, [by["compiled"], by["plain"]]] for case, by in measured.items()],
    }


def peers(options: argparse.Namespace) -> Figures:
    """The same work by this package and by other Python packages."""
    from tests.bench.peer_work import measured

    return {
        "title": "The same work by other Python packages",
        "unit": "µs of CPU",
        "series": ["Kubewright", "the other package"],
        "what": "The same bytes and objects in one process, by turns, medians of nine rounds.",
        "rows": [[label, [ours, theirs]] for label, ours, theirs in measured()],
    }


def growth(options: argparse.Namespace) -> Figures:
    """Costs at growing numbers."""
    from tests.bench.growth import LINES, measured

    rows = {
        line: [[count, asyncio.run(measured(prepare, count))] for count in counts if count <= options.largest]
        for line, (prepare, counts) in LINES.items()
    }
    return {
        "title": "How costs grow with what is stored, watched and defined",
        "unit": "µs of CPU a step",
        "series": list(rows),
        "what": "Steps in the API alone, on memory storage, the least of four runs (make bench-growth).",
        "lines": list(rows.values()),
    }


def reference(options: argparse.Namespace) -> Figures:
    """Requests over TLS to both servers."""
    from tests.bench.both_servers import measured

    if options.reference is None:
        raise LookupError("no --reference")
    return {
        "title": "A request to the server and to kube-apiserver",
        "unit": "µs of CPU of the server's processes a request",
        "series": ["kubewright serve, SQLite", "kube-apiserver and etcd"],
        "what": "One client and connection over TLS, both servers by turns; what they use when idle is subtracted.",
        "rows": [[name, list(values)] for name, values in measured(options.reference).items()],
    }


PLOTS: Mapping[str, Callable[[argparse.Namespace], Figures]] = {
    "reference": reference,
    "requests": requests_alone,
    "builds": builds,
    "peers": peers,
    "growth": growth,
}


def about() -> str:
    """What the figures are of: version, Python, processor."""
    cpus = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpus.read_text()) if cpus.exists() else None
    name = model[1] if model else platform.processor() or platform.machine()
    return f"Kubewright {VERSION}, Python {platform.python_version()}, {os.cpu_count()} cores of {name}."


def drawn(name: str, figures: Figures) -> str:
    """The plot of some figures."""
    repeat = f"To repeat it: make bench-report BENCH={name}"
    plot = plots.Plot(
        title=figures["title"],
        unit=figures["unit"],
        series=figures["series"],
        notes=(figures["what"], figures["about"], repeat),
    )
    return plots.lines(plot, figures["lines"]) if "lines" in figures else plots.bars(plot, figures["rows"])


def section(figures: Mapping[str, Figures]) -> str:
    """The part of the page that shows the figures."""
    out = []
    for name in (name for name in PLOTS if name in figures):
        of = figures[name]
        out += [f"## {of['title']}", "", f"![{of['title']}](pictures/bench-{name}.svg)", ""]
        out += _table_of_lines(of) if "lines" in of else _table(of)
    return "\n".join(out)


def _table(of: Figures) -> list[str]:
    first, second = of["series"]
    out = [f"| {of['unit']} | {first} | {second} | ratio |", "|---|---|---|---|"]
    for label, (ours, theirs) in of["rows"]:
        out.append(f"| {label} | {plots.shown(ours)} | {plots.shown(theirs)} | {theirs / ours:.2f} |")
    return [*out, ""]


def _table_of_lines(of: Figures) -> list[str]:
    out = [f"| {of['unit']} | at N |", "|---|---|"]
    for label, points in zip(of["series"], of["lines"], strict=True):
        out.append(f"| {label} | {', '.join(f'{count:,}: {plots.shown(cost)}' for count, cost in points)} |")
    return [*out, ""]


def draw(figures: Mapping[str, Figures]) -> dict[Path, str]:
    """Each file that shows the figures, and what is in it."""
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    files = {FIGURES.with_name(f"bench-{name}.svg"): drawn(name, of) for name, of in figures.items()}
    return {**files, PAGE: f"{before}{BEGIN}\n\n{section(figures)}\n{END}{after}"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("plots", nargs="*", metavar="PLOT", help=f"one of {', '.join(PLOTS)}")
    parser.add_argument("--reference", type=Path, metavar="DIR", help="of a running kube-apiserver")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--largest", type=int, default=100_000, help="N of growth (default %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.plots) - set(PLOTS):
        parser.error(f"no plot is named {', '.join(sorted(unknown))}; there are {', '.join(PLOTS)}")
    for name in () if options.draw else options.plots or PLOTS:
        print(f"measuring {name}", flush=True)
        try:
            keep(name, {**PLOTS[name](options), "about": about()})
        except LookupError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    for path, text in draw(kept()).items():
        path.write_text(text)
    return 0


def kept() -> dict[str, Figures]:
    """The figures of the last runs, by the plot's name."""
    figures: dict[str, Figures] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return figures


def keep(name: str, figures: Figures) -> None:
    """Keeps the figures of one plot in place of those that it had."""
    figures = json.loads(json.dumps(figures), parse_float=lambda text: float(f"{float(text):.4g}"))
    FIGURES.write_text(
        json.dumps({**kept(), name: figures}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
