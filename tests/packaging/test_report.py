"""The plots of docs/benchmarks.md: drawn from the kept figures, and nothing in them that was not measured."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.bench import plots, report

SVG = "{http://www.w3.org/2000/svg}"
PLOT = plots.Plot(title="a < b", unit="µs", series=("ours & theirs", "others"), notes=("what", "how"))


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def lengths(svg: str) -> list[float]:
    bars = [each for each in ET.fromstring(svg).iter(f"{SVG}rect") if each.get("x") == str(plots.LEFT)]
    return [float(each.attrib["width"]) for each in bars]


def test_files_show_the_kept_figures() -> None:
    """``make bench-report BENCH=--draw`` writes them again."""
    stale = [path.name for path, text in report.draw(report.kept()).items() if path.read_text() != text]
    assert stale == []


@pytest.mark.parametrize("name", sorted(report.kept()))
def test_a_plot_says_what_was_measured_and_how(name: str) -> None:
    figures = report.kept()[name]
    said = texts(report.drawn(name, figures))
    assert {figures["title"], figures["what"], figures["about"]} < set(said)
    assert f"To repeat it: make bench-report BENCH={name}" in said
    assert f"pictures/bench-{name}.svg" in report.PAGE.read_text()
    assert figures["series"] and all(any(series in text for text in said) for series in figures["series"])


@pytest.mark.parametrize("svg", [report.drawn(*each) for each in sorted(report.kept().items())])
def test_everything_is_on_the_page(svg: str) -> None:
    root = ET.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for each in root.iter(f"{SVG}text"):
        at, letters = float(each.attrib["x"]), 6.6 * len(each.text or "")
        left, right = (at - letters, at) if "e" in each.attrib["class"].split() else (at, at + letters)
        assert left >= 0 and right <= width and 0 < float(each.attrib["y"]) < height, each.text


def test_bars_are_as_long_as_their_values() -> None:
    drawn = plots.bars(PLOT, [("first", (10.0, 20.0)), ("second", (5.0, 40.0))])
    longest = max(lengths(drawn))
    assert lengths(drawn) == pytest.approx([longest / 4, longest / 2, longest / 8, longest], abs=0.1)
    assert {"a < b", "ours & theirs", "first", "10", "µs", "what", "how"} <= set(texts(drawn))
    assert drawn == plots.bars(PLOT, [("first", (10.0, 20.0)), ("second", (5.0, 40.0))])


def test_values_far_apart_have_a_logarithmic_scale() -> None:
    drawn = plots.bars(PLOT, [("first", (1.0, 10.0)), ("second", (100.0, 1000.0))])
    steps = [b - a for a, b in zip(lengths(drawn), lengths(drawn)[1:], strict=False)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert "µs, logarithmic scale" in texts(drawn)


def test_what_does_not_grow_is_a_level_line() -> None:
    drawn = plots.lines(PLOT, [[(10, 7.0), (1000, 7.0)], [(10, 1.0), (1000, 90.0)]])
    level, rising = (each.attrib["points"] for each in ET.fromstring(drawn).iter(f"{SVG}polyline"))
    heights = [point.split(",")[1] for point in level.split()]
    assert heights[0] == heights[1]
    first, last = (float(point.split(",")[1]) for point in rising.split())
    assert last < first


@pytest.mark.parametrize(("value", "said"), [(0.123456, "0.123"), (12.345, "12.3"), (12345.6, "12,346")])
def test_numbers_have_three_figures(value: float, said: str) -> None:
    assert plots.shown(value) == said


def test_a_plot_without_its_wheel_or_reference_says_so(tmp_path: Path) -> None:
    from tests.packaging.compiled import unpacked

    with pytest.raises(LookupError, match="make wheel-compiled"), unpacked(tmp_path):
        pass
