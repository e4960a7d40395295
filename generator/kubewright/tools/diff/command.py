"""``kubewright diff OLD NEW``: what changed in an API, and whom it breaks.

A state is a file or folder of specs, ``git:REVISION:PATH``, or ``kubernetes:1.36``. Exit codes: 0 nothing at or above
``--fail-on`` (error unless said otherwise), 1 such changes, 2 unusable input. Exceptions are in a TOML file: rule
code → list of shell patterns of paths, each decided on purpose; one that nothing needs any more is an error.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubewright.config import DEFAULT_RELEASE
from kubewright.diagnostics import Diagnostics, NamedObject, Severity
from kubewright.ir.api import Api
from kubewright.location import Location
from kubewright.source.text import read_bytes
from kubewright.tools.diff.change import KINDS
from kubewright.tools.diff.copies import copies_in
from kubewright.tools.diff.policy import Exceptions, diagnose, markdown
from kubewright.tools.diff.resources import compare
from kubewright.tools.diff.roundtrip import resource_path
from kubewright.tools.inputs.sources import StateError, read_states, with_facts
from kubewright.tools.outputs import reporting

_MANY: Final = 20
"""From so many changes on it is looked up which are in copies of built-in types: reading those takes a second."""
_WEIGHT: Final = {Severity.NOTE: 0, Severity.WARNING: 1, Severity.ERROR: 2}


def run(options: argparse.Namespace) -> int:
    try:
        exceptions = _exceptions(options.exceptions)
        diagnostics = Diagnostics()
        old = read_state(options.old, options.old_facts or options.facts, diagnostics)
        new = read_state(options.new, options.facts, diagnostics)
    except StateError as error:
        print(f"kubewright diff: {error}", file=sys.stderr)
        return 2
    if diagnostics.has_errors:
        form = reporting.FORMATS.get(options.format, reporting.text)  # Markdown is for changes alone
        sys.stdout.write(form([*diagnostics], {}))
        return 2
    changes = compare(old, new, documentation=options.documentation)
    copies = copies_in(new) if len(changes) >= _MANY and not options.each else lambda path: ""
    kinds = {
        name: r.kind for api in (old, new) for r in api.resources for name in (resource_path(r), r.definition)
    }
    found, unused = diagnose(changes, exceptions, each=options.each, copies=copies, kinds=kinds)
    levels = {s.value: s for s in Severity}
    shown = [d for d in found if _WEIGHT[d.severity] >= _WEIGHT[levels[options.least]]]
    if options.format == "markdown":
        sys.stdout.write(markdown(shown))
    else:
        titles = {code: kind.name for code, kind in KINDS.items()}
        sys.stdout.write(reporting.FORMATS[options.format](shown, titles, _subjects(new)))
    if options.format == "text" and not options.quiet:
        print(reporting.count(shown), file=sys.stderr)
    for entry in unused:
        print(
            f"kubewright diff: {options.exceptions}: nothing needs the exception {entry}: take it out",
            file=sys.stderr,
        )
    return int(bool(unused) or any(_WEIGHT[d.severity] >= _WEIGHT[levels[options.fail_on]] for d in found))


def _subjects(api: Api) -> list[tuple[Location, NamedObject]]:
    """The kinds that were compared, each at its file."""
    return [(Location(r.location.file), NamedObject(r.kind, name=resource_path(r))) for r in api.resources]


def read_state(state: str, facts: Path | None, diagnostics: Diagnostics) -> Api:
    """The API that ``state`` names, with the conversions and protobuf numbers of the folder ``facts``.

    Raises ``StateError`` where there is no such thing; faults of the specs are diagnostics.
    """
    # The catalog tells the conversions of its newest release; older ones have fields it does not speak of.
    is_older = state.startswith("kubernetes:") and state != f"kubernetes:{DEFAULT_RELEASE}"
    wanted = ("protobuf",) if is_older else ("conversions", "protobuf")
    api = with_facts(read_states([state], diagnostics), state, facts, wanted, diagnostics)
    if state.startswith("kubernetes:"):
        # The catalog knows the storage versions of one release; those of the others are not facts to compare.
        return replace(api, resources=tuple(replace(r, storage=False) for r in api.resources))
    return api


def _exceptions(path: Path | None) -> Exceptions:
    if path is None:
        return Exceptions({})
    try:
        document = tomllib.loads(read_bytes(path).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StateError(f"{path}: {error}") from None
    for code, patterns in document.items():
        if code not in KINDS:
            raise StateError(f"{path}: there is no change {code}")
        if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
            raise StateError(f"{path}: {code}: must be a list of path patterns")
    return Exceptions({code: tuple(patterns) for code, patterns in document.items()})
