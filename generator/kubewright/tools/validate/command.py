"""``kubewright validate``: manifests judged offline, as a kube-apiserver would judge them.

Exit codes: 0 every document is valid, 1 at least one is not, 2 the command line, the input set or the schemas cannot
be used (no documents at all among them, unless ``--allow-empty``).
"""

from __future__ import annotations

import argparse
import sys

from kubewright.diagnostics import Diagnostics, Severity
from kubewright.source.kubernetes_validate import releases
from kubewright.tools.inputs import crds
from kubewright.tools.outputs import reporting
from kubewright.tools.validate.check import CODES, Options
from kubewright.tools.validate.inputs import STDIN, read_chunks
from kubewright.tools.validate.kinds import Kinds
from kubewright.tools.validate.misspelt import correct
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
    for crd in crds.read_crds(options.crds, diagnostics):
        kinds.add_crd(crd.value)
    if diagnostics.has_errors:
        reporting.report_unusable(diagnostics, options.format)
        return MISUSED
    chunks = read_chunks(options.paths, diagnostics, options.exclude)
    if not chunks and not diagnostics.has_errors and not options.allow_empty:
        return _misused("the input has no documents; --allow-empty accepts that")
    unreadable = diagnostics.has_errors
    progress = reporting.progress(len(chunks), quiet=options.quiet)
    judged = judge_all(
        chunks,
        kinds,
        Options(options.strict, options.ignore_missing_schemas),
        jobs=options.jobs,
        progress=progress,
    )
    progress.clear()
    if options.fix:
        corrected = correct(each for one in judged for each in one.misspelt if each.file != STDIN)
        print(f"{corrected} field{'s' * (corrected != 1)} renamed", file=sys.stderr)
        if corrected:
            options.fix = False
            return run(options)
    findings = [*diagnostics, *(finding for each in judged for finding in each.findings)]
    sys.stdout.write(reporting.FORMATS[options.format](findings, CODES))
    if not options.quiet:
        objects = sum(each.objects for each in judged)
        print(f"{objects} object{'s' * (objects != 1)}: {reporting.count(findings)}", file=sys.stderr)
    if unreadable:
        return MISUSED
    return INVALID if any(f.severity is Severity.ERROR for f in findings) else VALID


def _misused(text: str) -> int:
    print(f"kubewright validate: {text}", file=sys.stderr)
    return MISUSED
