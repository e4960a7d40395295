"""``kubewright lifecycle``: a release plan checked against the deprecation policy, and the policy's timeline of it.

A plan is a YAML file (``planning/plan.py`` shows one). Without a file the built-in kinds' own life cycles are meant.

Exit codes: 0 the plan keeps the policy, 1 it does not, 2 the plan cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from kubewright.diagnostics import Diagnostic, Diagnostics, Severity
from kubewright.ir.api import Api
from kubewright.source.text import read_single
from kubewright.tools.diff.change import Impact
from kubewright.tools.diff.command import read_state
from kubewright.tools.diff.roundtrip import find_losses
from kubewright.tools.inputs.sources import StateError
from kubewright.tools.lifecycle.agreement import disagreements
from kubewright.tools.lifecycle.plan import ReleasePlan, builtin_plan, read_plan
from kubewright.tools.lifecycle.policy import RULES, judge, lines_of
from kubewright.tools.lifecycle.releases import parse_release
from kubewright.tools.lifecycle.timeline import timeline
from kubewright.tools.outputs import reporting

KEPT, BROKEN, MISUSED = 0, 1, 2


def run(options: argparse.Namespace) -> int:
    """Checks the plan and prints findings, or prints a table or timeline."""
    diagnostics = Diagnostics()
    plan = _read(options.plan, diagnostics)
    if options.release and not options.specs:
        print("kubewright lifecycle: --release is that of --specs; give them too", file=sys.stderr)
        return MISUSED
    try:
        release = parse_release(options.release) if options.release else None
        api = read_state(options.specs, options.facts, diagnostics) if options.specs else None
    except (StateError, ValueError) as error:
        print(f"kubewright lifecycle: {error}", file=sys.stderr)
        return MISUSED
    if plan is None or diagnostics.has_errors:
        reporting.report_unusable(diagnostics, options.format)
        return MISUSED
    showing = options.table or options.timeline or (options.plan is None and not options.check)
    if showing and options.only is not None:
        kinds = {
            kind
            for kind in lines_of(plan.entries)
            if fnmatchcase("/".join((kind[0] or "core", kind[1])), options.only)
        }
        if not kinds:
            print(f"kubewright lifecycle: no kind is like {options.only}", file=sys.stderr)
            return MISUSED
        plan = replace(plan, entries=tuple(e for e in plan.entries if (e.group, e.kind) in kinds))
    if showing:
        sys.stdout.write(timeline(plan) if options.timeline else table(plan))
        return KEPT
    findings = judge(plan)
    if api is not None:
        findings += [*disagreements(plan, api.resources, release), *_losses(api)]
    sys.stdout.write(reporting.FORMATS[options.format](findings, RULES))
    return BROKEN if any(f.severity is Severity.ERROR for f in findings) else KEPT


def _losses(api: Api) -> list[Diagnostic]:
    """Rule #2 as far as specs tell: an error where a field is lost, a note where another version may refuse it."""
    found = []
    for loss in find_losses(api):
        is_lost = loss.kind.impact is Impact.BREAKS_STORED
        severity = Severity.ERROR if is_lost else Severity.NOTE
        found.append(Diagnostic("P012", severity, f"{loss.path}: {loss.message}", loss.location))
    return found


def _read(path: Path | None, diagnostics: Diagnostics) -> ReleasePlan | None:
    if path is None:
        return builtin_plan(diagnostics)
    document = read_single(path, diagnostics)
    return None if document is None else read_plan(document, diagnostics)


def table(plan: ReleasePlan) -> str:
    """The life cycles in Markdown, and of a beta that is only deprecated the release it may go with."""
    lines = [
        "| kind | API version | introduced | deprecated | removed | use instead |",
        "|---|---|---|---|---|---|",
    ]
    for entry in sorted(plan.entries, key=lambda e: (e.kind, e.api_version)):
        removed = str(entry.removed or "")
        if entry.deprecated and not removed and entry.level == 1:
            removed = f"{plan.calendar.earliest(entry.deprecated)} at the earliest"
        said = (str(entry.introduced), str(entry.deprecated or ""), removed, entry.replacement)
        cells = (entry.kind, entry.api_version, *said)
        lines.append("| " + " | ".join(map(reporting.markdown, cells)) + " |")
    return "\n".join(lines) + "\n"
