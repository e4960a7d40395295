"""``kubewright apply3``: the patch that client-side apply would send, from three files.

What was applied last (original), what is wanted (modified) and what is there (current) make one patch:
strategic for built-in kinds, a merge patch for custom resources. Exit codes: 0 done, 1 conflicts (with
``--no-overwrite``), 2 the input could not be understood.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apimachinery.merge import merge_patch, strategic, strategic_diff
from apimachinery.merge.errors import MergeError
from kubewright.diagnostics import Diagnostics
from kubewright.tools.inputs import objects
from kubewright.tools.inputs.objects import MISUSED, OK, REFUSED, InputFault

_IDENTITY = (("apiVersion",), ("kind",), ("metadata", "name"))


EXAMPLES = r"""
kubewright apply3 --original applied-last.yaml --modified wanted.yaml --current live.yaml
kubewright apply3 --original old.yaml --modified new.yaml --current live.yaml --crds crds/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument("--original", type=Path, metavar="FILE", help="what was applied last; none: nothing")
    parser.add_argument("-m", "--modified", type=Path, required=True, metavar="FILE", help="what is wanted")
    parser.add_argument("-c", "--current", type=Path, required=True, metavar="FILE", help="what is there")
    parser.add_argument("--result", action="store_true", help="print the patched object instead of the patch")
    parser.add_argument(
        "--no-overwrite", action="store_true", help="refuse where others changed the same fields meanwhile"
    )
    objects.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Runs the sub-command."""
    diagnostics = Diagnostics()
    try:
        answer = _applied(options, diagnostics)
    except InputFault as fault:
        objects.complain("apply3", str(fault), diagnostics)
        return MISUSED
    except strategic_diff.PatchConflict as conflict:
        lines = ["others changed the same fields since they were applied last"]
        lines += [f"  {path}" for path in conflict.paths]
        objects.complain("apply3", "\n".join(lines), diagnostics)
        return REFUSED
    except MergeError as error:
        objects.complain("apply3", error.message, diagnostics)
        return REFUSED
    objects.write(answer, options.format)
    return OK


def _applied(options: argparse.Namespace, diagnostics: Diagnostics) -> Any:
    read: dict[str, Any] = {}
    for what in ("original", "modified", "current"):
        path = getattr(options, what)
        if path is None:
            read[what] = {}
            continue
        value = objects.read_object(path, diagnostics, what=what)
        read[what] = objects.require_object(value, path, what)
    original, modified, current = read["original"], read["modified"], read["current"]
    types = objects.find_types(current, options, diagnostics)
    if types.patch is None:
        if options.no_overwrite:
            raise InputFault(
                "--no-overwrite needs a kind with strategic merge patch; custom resources have none"
            )
        patch = merge_patch.create_three_way(original, modified, current)
        return merge_patch.apply(current, patch) if options.result else patch
    patch = strategic_diff.create_three_way(
        original, modified, current, types.patch, overwrite=not options.no_overwrite, unchanged=_IDENTITY
    )
    return strategic.apply(current, patch, types.patch) if options.result else patch
