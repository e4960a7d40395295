"""``kubewright crd``: CustomResourceDefinition manifests from any description of an API.

Exit codes: 0 written, 1 a kind cannot be a CustomResourceDefinition or a file is in the way (nothing is written then),
2 the command line or the input cannot be used. Without ``--output`` all manifests go to standard output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection

from kubewright.diagnostics import Diagnostics, printable
from kubewright.ir.api import File
from kubewright.source.kubernetes_validate import releases
from kubewright.tools.crd.classes import classes_of
from kubewright.tools.crd.inlining import UndefinableError
from kubewright.tools.crd.manifests import DefinedKinds, define, kinds_of
from kubewright.tools.inputs.sources import StateError, read_states
from kubewright.tools.outputs import reporting
from kubewright.tools.outputs.writing import MISUSED, OK, REFUSED, put


def run(options: argparse.Namespace) -> int:
    """Writes the manifests; returns the exit code."""
    if options.kubernetes not in releases():
        return _misused(f"--kubernetes {options.kubernetes}: one of {', '.join(releases())}")
    if options.check and options.output is None:
        return _misused("--check compares with the folder of --output")
    diagnostics = Diagnostics()
    try:
        api = read_states(options.sources, diagnostics)
    except StateError as error:
        return _misused(str(error))
    if diagnostics.has_errors:
        sys.stderr.write(reporting.text([*diagnostics], {}))
        return MISUSED
    selection = DefinedKinds(
        tuple(options.kind), tuple(options.group), options.storage, not options.no_descriptions
    )
    chosen = kinds_of(api, selection)
    lacking = _lacking(selection, chosen.keys(), {r.version for each in chosen.values() for r in each})
    if lacking:
        known = sorted(
            {f"{kind} ({group})" if group else kind for group, kind in kinds_of(api, DefinedKinds())}
        )
        return _misused(f"{lacking}; there are: {', '.join(known) or 'no kinds at all'}")
    manifests = define(api, selection, options.kubernetes, diagnostics)
    files = [File(manifest.file, manifest.text) for manifest in manifests]
    if options.python:
        try:
            files = [File("classes.py", classes_of(manifest.value for manifest in manifests))]
        except UndefinableError as error:
            return _misused(f"--python: {error}")
    code = REFUSED if diagnostics.has_errors else OK
    if code == OK and options.output is not None:
        code = put(files, options, diagnostics, partial=bool(selection.kinds or selection.groups))
    sys.stderr.write(
        reporting.text([d for d in diagnostics if d.severity.value == "error" or not options.quiet], {})
    )
    if code == OK and options.output is None:
        sys.stdout.write("---\n".join(file.content for file in files))
    return code


def _lacking(selection: DefinedKinds, found: Collection[tuple[str, str]], versions: set[str]) -> str:
    """What was asked for and is not there, in words."""
    for kind in selection.kinds:
        if not any(name == kind for _, name in found):
            return f"there is no kind {kind}"
    for group in selection.groups:
        if not any(name == group for name, _ in found):
            return f"there is no kind of the group {group}"
    if selection.storage and selection.storage not in versions:
        return f"no kind has the version {selection.storage}"
    return "" if found else "there is no kind to define"


def _misused(message: str) -> int:
    print(f"kubewright crd: {printable(message)}", file=sys.stderr)
    return MISUSED
