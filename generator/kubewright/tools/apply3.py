"""``kubewright apply3``: the patch that client-side apply would send, from three files.

What was applied last (original), what is wanted (modified) and what is there (current) make one patch:
strategic for built-in kinds, a merge patch for custom resources. Exit codes: 0 done, 1 conflicts (with
``--no-overwrite``), 2 the input could not be understood.
"""

from __future__ import annotations

import argparse
from typing import Any

from apimachinery.merge import merge_patch, strategic, strategic_diff
from apimachinery.merge.errors import MergeError
from kubewright.diagnostics import Diagnostics
from kubewright.tools.inputs import objects
from kubewright.tools.inputs.objects import MISUSED, OK, REFUSED, InputFault

_IDENTITY = (("apiVersion",), ("kind",), ("metadata", "name"))


def run(options: argparse.Namespace) -> int:
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
