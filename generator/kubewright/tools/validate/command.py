"""``kubewright validate``: manifests judged offline, as a kube-apiserver would judge them.

Exit codes: 0 every document is valid, 1 at least one is not, 2 the command line, the input set or the schemas cannot
be used (no documents at all among them, unless ``--allow-empty``).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kubewright.diagnostics import Diagnostic, Diagnostics, Severity
from kubewright.source.releases import releases
from kubewright.tools.inputs.projects import Project, read_project
from kubewright.tools.outputs import reporting
from kubewright.tools.validate.check import CODES, CheckOptions, Judgement
from kubewright.tools.validate.inputs import DOCUMENTS, STDIN
from kubewright.tools.validate.kinds import Kinds
from kubewright.tools.validate.misspelt import correct
from kubewright.tools.validate.placeholders import is_unfilled, without_placeholders
from kubewright.tools.validate.run import judge_all

VALID, INVALID, MISUSED = 0, 1, 2


def run(options: argparse.Namespace) -> int:
    """Judges all documents named; prints findings to standard output, the summary to standard error."""
    kinds = Kinds(options.kubernetes, options.package)
    try:
        kinds.load()
    except LookupError:
        known = ", ".join(releases())
        return _misused(f"no schemas of Kubernetes {options.kubernetes}; there are: {known}")
    if options.jobs < 0:
        return _misused("--jobs must not be negative")
    diagnostics = Diagnostics()
    if options.crds:  # imported where it is needed: most runs read manifests alone
        from kubewright.tools.inputs.crds import read_crds

        for crd in read_crds(options.crds, diagnostics):
            kinds.add_crd(crd.value)
    if diagnostics.has_errors:
        reporting.report_unusable(diagnostics, options.format)
        return MISUSED
    project = read_project(options.paths, diagnostics, options.exclude, helm=options.helm)
    chunks = project.chunks
    is_empty = not chunks and not diagnostics.has_errors and not options.allow_empty
    if is_empty and not project.notes:
        return _misused("the input has no documents; --allow-empty accepts that")
    unreadable = diagnostics.has_errors
    progress = reporting.progress(len(chunks), quiet=options.quiet)
    how = CheckOptions(options.strict, options.ignore_missing_schemas, options.format == "junit")
    judged = judge_all(
        chunks,
        kinds,
        how,
        jobs=options.jobs,
        progress=progress,
    )
    progress.clear()
    if options.fix:
        corrected = correct(each for one in judged for each in one.misspelt if each.file != STDIN)
        print(f"{corrected} field{'s' * (corrected != 1)} renamed", file=sys.stderr)
        if corrected:
            options.fix = False
            DOCUMENTS.forget()
            return run(options)
    findings = [*diagnostics, *fold_missing(_settled(project, judged, kinds, how)), *project.notes]
    subjects = [pair for each in judged for pair in each.subjects]
    sys.stdout.write(reporting.FORMATS[options.format](findings, CODES, subjects))
    if not options.quiet:
        objects = sum(each.objects for each in judged)
        others = f"; {project.others} other file{'s' * (project.others != 1)}" if project.others else ""
        said = f"{objects} object{'s' * (objects != 1)}: {reporting.count(findings)}{others}"
        print(said, file=sys.stderr)
    if unreadable or is_empty:
        return MISUSED
    return INVALID if any(f.severity is Severity.ERROR for f in findings) else VALID


def _settled(
    project: Project, judged: Sequence[Judgement], kinds: Kinds, how: CheckOptions
) -> Iterator[Diagnostic]:
    """The findings of all documents, kustomizations built, and those of patches."""
    built = None
    if project.kustomizations:
        from kubewright.tools.validate.patches import BuiltProject

        built = BuiltProject.of(project.kustomizations, kinds, how)
    for chunk, each in zip(project.chunks, judged, strict=True):
        if each.findings:
            findings = each.findings if built is None else built.settled(chunk, each)
            yield from findings if chunk.file in project.named else without_placeholders(chunk, findings)
    if built is not None:
        yield from (each for each in built.findings() if not is_unfilled(each))


def fold_missing(findings: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Findings with one for each kind that nobody describes, at the first object of it."""
    first: dict[str, Diagnostic] = {}
    number: Counter[str] = Counter()
    for each in [*findings]:
        if each.code == "V002":
            first.setdefault(each.message, each)
            number[each.message] += 1
        else:
            yield each
    for message, each in first.items():
        more = number[message] - 1
        said = f"{message} (and {more} more object{'s' * (more != 1)} of it)" if more else message
        yield replace(each, message=said)


def _misused(text: str) -> int:
    print(f"kubewright validate: {text}", file=sys.stderr)
    return MISUSED
