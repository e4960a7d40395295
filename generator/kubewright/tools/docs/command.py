"""``kubewright docs``: reference pages of an API, as Markdown or as one HTML page that can be searched.

Exit codes: 0 written, 1 a file is in the way or ``--check`` found differences, 2 the command line or the input cannot
be used. Without ``--output`` one page goes to standard output.
"""

from __future__ import annotations

import argparse
import sys

from kubewright.diagnostics import Diagnostics, printable
from kubewright.ir.api import Api, File
from kubewright.ir.shapes import fold
from kubewright.tools.arguments.docs import HTML_FILE
from kubewright.tools.inputs.sources import DESCRIPTIONS, StateError, lacks_prose, read_states
from kubewright.tools.outputs import reporting
from kubewright.tools.outputs.writing import MISUSED, OK, put


def run(options: argparse.Namespace) -> int:
    """Writes the pages; returns the exit code."""
    states = [*options.sources, *([f"kubernetes:{options.kubernetes}"] if options.kubernetes else [])]
    if not states:
        return _misused("nothing to describe: name files, folders, or --kubernetes RELEASE")
    if options.check and options.output is None:
        return _misused("--check compares with the folder of --output")
    diagnostics = Diagnostics()
    try:
        api = read_states(states, diagnostics)
    except StateError as error:
        return _misused(str(error))
    if diagnostics.has_errors:
        sys.stderr.write(reporting.text([*diagnostics], {}))
        return MISUSED
    known = sorted({definition.group for definition in api.definitions})
    lacking = [group for group in options.group if group not in known]
    if lacking:
        return _misused(f"there is no group {lacking[0]!r}; there are: {', '.join(filter(None, known))}")
    if options.group:
        api = _only(api, options.group)
    if any(resource.manifest is not None for resource in api.resources):
        api = fold(api, prose=True)  # a CRD repeats a type wherever it is used
    if lacks_prose(states):
        print(f"kubewright docs: {DESCRIPTIONS}", file=sys.stderr)
    files = _pages(api, options)
    if options.output is None:
        sys.stdout.write(files[0].content)
        return OK
    code = put(files, options, diagnostics, partial=False)
    sys.stderr.write(reporting.text([*diagnostics], {}))
    return code


def _pages(api: Api, options: argparse.Namespace) -> list[File]:
    from kubewright.tools.docs import markdown
    from kubewright.tools.docs.page import page
    from kubewright.tools.docs.reference import reference

    content = reference(api, options.title or _title(api, options))
    if options.output_format == "html":
        return [File(HTML_FILE, page(content))]
    if options.output is None:
        return [File(markdown.INDEX, markdown.single_page(content))]
    return markdown.pages(content)


def _title(api: Api, options: argparse.Namespace) -> str:
    releases = [state for state in options.sources if state.startswith("kubernetes:")]
    if options.kubernetes or releases:
        return f"Kubernetes {options.kubernetes or releases[0].removeprefix('kubernetes:')}"
    groups = sorted({resource.group for resource in api.resources})
    return ", ".join(groups) if 0 < len(groups) < 4 else "API reference"


def _only(api: Api, groups: list[str]) -> Api:
    """The definitions of ``groups`` with everything that they refer to, and their resources."""
    from dataclasses import replace

    from kubewright.ir.walk import referenced

    table = {definition.name: definition for definition in api.definitions}
    wanted = [definition.name for definition in api.definitions if definition.group in groups]
    kept: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in kept and name in table:
            kept.add(name)
            wanted += referenced(table[name].value)
    return replace(
        api,
        definitions=tuple(d for d in api.definitions if d.name in kept),
        resources=tuple(r for r in api.resources if r.definition in kept and r.group in groups),
    )


def _misused(message: str) -> int:
    print(f"kubewright docs: {printable(message)}", file=sys.stderr)
    return MISUSED
