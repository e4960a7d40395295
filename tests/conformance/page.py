"""docs/conformance.md, written from ``specs.yaml``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.conformance.specs import FAILS, NOT_RUN, OUT_OF_REACH, PASSES, SERVE, STATES, Conformance, Spec

PAGE = Path(__file__).resolve().parents[2] / "docs/conformance.md"
_HEAD = """\
# Conformance

Which of the {total} conformance specs of Kubernetes {release} pass against a server with three simulated nodes, the
built-in scheduler and controllers (`kubewright serve {options} --nodes 3`).
`make conformance` runs them with Kubernetes' own end-to-end program and writes this page. A spec has a state only if it
was run.

| group | passes | fails | out of reach | not run | total |
|---|---|---|---|---|---|
"""


def rendered(found: Conformance) -> str:
    """The page."""
    groups = sorted({spec.group for spec in found.specs})
    rows = [_row(group, [spec for spec in found.specs if spec.group == group]) for group in groups]
    rows.append(_row("**all**", list(found.specs)))
    parts = [
        _HEAD.format(total=len(found.specs), release=found.release, options=SERVE) + "\n".join(rows),
        *_out_of_reach(found),
        *_failing(found),
        *(_listed(found, state) for state in (PASSES, NOT_RUN)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(title: str, specs: list[Spec]) -> str:
    counts = Counter(spec.state for spec in specs)
    return f"| {title} | {' | '.join(str(counts[state]) for state in STATES)} | {len(specs)} |"


def _out_of_reach(found: Conformance) -> list[str]:
    parts = [
        "## Out of reach",
        "Nothing runs in the containers of simulated nodes, so these specs cannot pass.",
    ]
    for name, text in found.reasons.items():
        specs = [spec for spec in found.specs if spec.state == OUT_OF_REACH and spec.reason == name]
        if specs:
            parts += [f"**{text}** ({len(specs)})", _bullets(specs)]
    return parts


def _failing(found: Conformance) -> list[str]:
    specs = [spec for spec in found.specs if spec.state == FAILS]
    if not specs:
        return []
    return ["## Failing", "\n".join(f"- {_escaped(spec.name)}: {_escaped(spec.reason)}" for spec in specs)]


def _listed(found: Conformance, state: str) -> str:
    specs = [spec for spec in found.specs if spec.state == state]
    return f"## {'Passing' if state == PASSES else 'Not run'}\n\n{_bullets(specs)}" if specs else ""


def _bullets(specs: list[Spec]) -> str:
    return "\n".join(f"- {_escaped(spec.name)}" for spec in specs)


def _escaped(text: str) -> str:
    for mark in "\\[]<>*_`|":
        text = text.replace(mark, "\\" + mark)
    return text
