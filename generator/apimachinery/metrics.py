"""What servers and operators count, in the Prometheus text format: families of counters, gauges and histograms.

Theory. A *family* has a name, labels and *series*, one for each combination of values. Whoever counts gets its series
once and keeps it, so that counting is an addition: no lookup by labels on the way of a request. Nothing is computed
before somebody asks for /metrics. Names and labels are kube-apiserver's where it has the thing; what is ours alone is
called ``kubewright_…``.

There are no locks: whoever counts from several threads brings one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_Series = TypeVar("_Series", "Count", "Distribution")
Pairs = Iterable[tuple[Sequence[str], float]]
"""Values of labels, and the number that belongs to them."""


class Count:
    """One series of a counter, or of a gauge that is set."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float = 1) -> None:
        """Counts."""
        self.value += amount


class Distribution:
    """One series of a histogram: how many observations fell below each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Adds an observation, or as many of the same."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.counts)


class MetricFamily(Generic[_Series]):
    """All series of one name."""

    def __init__(self, name: str, text: str, kind: str, labels: Sequence[str], make: Callable[[], _Series]):
        self.name, self.text, self.kind, self.labels = name, text, kind, tuple(labels)
        self._make: Callable[[], _Series] = make
        self._series: dict[tuple[str, ...], _Series] = {}

    def at(self, *values: str) -> _Series:
        """The series of these values of the labels, made where there is none yet."""
        series = self._series.get(values)
        if series is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {values}")
            series = self._series[values] = self._make()
        return series

    def forget(self, *values: str) -> None:
        """Lets go of a series."""
        self._series.pop(values, None)

    def lines(self) -> Iterable[str]:
        """The series as text, in order."""
        for values, series in sorted(self._series.items(), key=lambda pair: pair[0]):
            if isinstance(series, Count):
                yield f"{self.name}{_labels(self.labels, values)} {number(series.value)}"
            else:
                yield from _histogram(self.name, self.labels, values, series)


def _histogram(
    name: str, labels: Sequence[str], values: Sequence[str], series: Distribution
) -> Iterable[str]:
    below = 0
    with_bound = (*labels, "le")
    for bound, count in zip((*series.bounds, float("inf")), series.counts, strict=True):
        below += count
        yield f"{name}_bucket{_labels(with_bound, (*values, number(bound)))} {below}"
    plain = _labels(labels, values)
    yield f"{name}_sum{plain} {number(series.sum)}"
    yield f"{name}_count{plain} {below}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A family whose numbers are looked up when they are asked for, as a line of a table."""

    name: str
    text: str
    values: Callable[[], Pairs]
    labels: Sequence[str] = ()
    kind: str = "gauge"

    def asked(self) -> _Answered:
        """The numbers of this moment."""
        return _Answered(self.name, self.text, self.kind, self.labels, list(self.values()))


def one(name: str, text: str, value: Callable[[], float], kind: str = "gauge") -> Figure:
    """A figure of one number."""
    return Figure(name, text, lambda: [((), value())], (), kind)


@dataclass(frozen=True, slots=True)
class _Answered:
    """Numbers that were looked up."""

    name: str
    text: str
    kind: str
    names: Sequence[str]
    values: list[tuple[Sequence[str], float]]

    def lines(self) -> Iterable[str]:
        for values, value in sorted(self.values, key=lambda pair: tuple(pair[0])):
            yield f"{self.name}{_labels(self.names, values)} {number(value)}"


Shown: TypeAlias = MetricFamily[Count] | MetricFamily[Distribution] | _Answered
"""A family whose numbers are known."""


class Metrics:
    """The families of one server or operator."""

    def __init__(self) -> None:
        self._families: dict[str, MetricFamily[Count] | MetricFamily[Distribution] | Figure] = {}
        self.before: list[Callable[[], None]] = []
        """Called before the numbers are told: by whom they are kept back for a while."""

    def counter(self, name: str, text: str, *labels: str) -> MetricFamily[Count]:
        """A number that only grows."""
        return self._add(MetricFamily(name, text, "counter", labels, Count))

    def gauges(self, name: str, text: str, *labels: str) -> MetricFamily[Count]:
        """Numbers that are set."""
        return self._add(MetricFamily(name, text, "gauge", labels, Count))

    def histogram(
        self, name: str, text: str, bounds: Sequence[float], *labels: str
    ) -> MetricFamily[Distribution]:
        """Observations below bounds (in ascending order; the last, infinity, goes without saying)."""
        fixed = tuple(bounds)
        return self._add(MetricFamily(name, text, "histogram", labels, lambda: Distribution(fixed)))

    def _add(self, family: MetricFamily[_Series]) -> MetricFamily[_Series]:
        if family.name in self._families:
            raise ValueError(f"there are two metrics {family.name}")
        self._families[family.name] = family
        return family

    def gauge(self, name: str, text: str, value: Callable[[], float], *, kind: str = "gauge") -> None:
        """Adds a number that is looked up when it is asked for."""
        self._families[name] = one(name, text, value, kind)

    def asked(
        self, name: str, text: str, labels: Sequence[str], values: Callable[[], Pairs], *, kind: str = "gauge"
    ) -> None:
        """Numbers with labels that are looked up when they are asked for."""
        self._families[name] = Figure(name, text, values, labels, kind)

    def show(self, figures: Iterable[Figure]) -> None:
        """Adds the figures of a table."""
        self._families.update({figure.name: figure for figure in figures})

    def text(self) -> str:
        """All of them, by name."""
        return exposition(self.current())

    def current(self) -> list[Shown]:
        """The families by name, with the numbers of those that are looked up."""
        for settle in self.before:
            settle()
        families = [family for _, family in sorted(self._families.items())]
        return [family.asked() if isinstance(family, Figure) else family for family in families]


def exposition(families: Sequence[Shown]) -> str:
    """The text format. It may be written on another thread than counts: series are copied in one step of the
    interpreter, and what is counted meanwhile may be in it or not."""
    lines: list[str] = []
    for family in families:
        lines += (
            f"# HELP {family.name} {_escaped(family.text)}",
            f"# TYPE {family.name} {family.kind}",
        )
        lines += family.lines()
    return "\n".join(lines) + "\n"


def with_others(own: str, others: Mapping[str, str]) -> str:
    """A page with the series of other processes, which have their process as the label ``worker``."""
    families = _families(own)
    for worker, page in others.items():
        label = f'worker="{_quoted(worker)}"'
        for name, lines in _families(page).items():
            known = families.setdefault(name, [line for line in lines if line.startswith("#")])
            known += [_labelled(line, label) for line in lines if not line.startswith("#")]
    return "\n".join([line for lines in families.values() for line in lines]) + "\n"


def _families(page: str) -> dict[str, list[str]]:
    """The lines of each family of a page."""
    families: dict[str, list[str]] = {}
    for line in page.splitlines():
        if line.startswith("# HELP "):
            lines = families.setdefault(line.split(" ", 3)[2], [])
        lines.append(line)
    return families


def _labelled(line: str, label: str) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f"{name}{{{label},{rest}"
    name, _, rest = line.partition(" ")
    return f"{name}{{{label}}} {rest}"


def number(value: float) -> str:
    """A number as Prometheus reads it: whole ones without a fraction, infinity as ``+Inf``."""
    if value == float("inf"):
        return "+Inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)) if abs(value) < 1e6 else _exponent(value)
    return _exponent(value)


def _exponent(value: float) -> str:
    """As Go prints it: ``1e+06``, ``1.05e+06``, 21 digits at most without an exponent are not asked for."""
    text = repr(float(value))
    if "e" not in text and abs(value) >= 1e6:
        digits = text.replace(".", "").rstrip("0").lstrip("-")
        power = len(text.lstrip("-").split(".")[0]) - 1
        first, rest = digits[0], digits[1:]
        sign = "-" if value < 0 else ""
        text = f"{sign}{first}{'.' + rest if rest else ''}e+{power:02d}"
    return text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{n}="{_quoted(v)}"' for n, v in zip(names, values, strict=True)) + "}"


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
