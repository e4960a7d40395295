"""``kubewright patch``: what a patch, or a server-side apply, would make of an object, without a server.

Prints the object after it, managedFields included. Exit codes: 0 done, 1 refused (conflicts are listed by
manager and path), 2 the input could not be understood.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from apimachinery.merge import json_patch, merge_patch, strategic
from apimachinery.merge.apply import FieldOwnership, keep_times
from apimachinery.merge.errors import BadPatch, Conflicts, MergeError
from kubewright.diagnostics import Diagnostics
from kubewright.tools.inputs import objects
from kubewright.tools.inputs.objects import MISUSED, OK, REFUSED, InputFault, ObjectTypes


def run(options: argparse.Namespace) -> int:
    diagnostics = Diagnostics()
    try:
        answer = _patched(options, diagnostics)
    except InputFault as fault:
        objects.complain("patch", str(fault), diagnostics)
        return MISUSED
    except Conflicts as conflicts:
        objects.complain("patch", _conflict_text(conflicts), diagnostics)
        return REFUSED
    except MergeError as error:
        detail = error.detail if isinstance(error, json_patch.JsonPatchFailed) else error.message
        objects.complain("patch", detail, diagnostics)
        return MISUSED if isinstance(error, BadPatch) else REFUSED
    objects.write(answer, options.format)
    return OK


def _conflict_text(conflicts: Conflicts) -> str:
    count = len(conflicts.conflicts)
    lines = [f"{count} conflict{'s' if count > 1 else ''}; --force takes the fields over"]
    lines += [f"  {conflict.path}: owned by {conflict.owner}" for conflict in conflicts.conflicts]
    return "\n".join(lines)


def _patched(options: argparse.Namespace, diagnostics: Diagnostics) -> Any:
    patch = objects.read_patch(options.patch, diagnostics)
    live = None
    if options.filename is not None:
        live = objects.read_object(options.filename, diagnostics, what="object")
        live = objects.require_object(live, options.filename, "object")
    elif options.type != "apply":
        raise InputFault("-f is missing: only --type apply can make an object that is not there yet")
    about = live if live is not None else objects.require_object(patch, options.patch, "patch")
    types = objects.find_types(about, options, diagnostics)
    ownership = FieldOwnership(
        api_version=about["apiVersion"],
        kind=types.kind,
        type=types.type_of(about["apiVersion"]),
        subresource=options.subresource,
        converter=types,
        empty=objects.empty_object(options.package, types.definition) if types.definition else None,
    )
    now = options.now or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if options.type == "apply":
        new = ownership.apply(live, patch, options.field_manager, force=options.force, now=now)
    else:
        assert live is not None
        new = _change(options.type, live, patch, types)
        if not isinstance(new, dict) or not isinstance(new.get("metadata", {}), dict):
            raise InputFault("what the patch makes is no object any more")
        new = ownership.update(live, new, options.field_manager, now=now)
    return new if live is None else keep_times(live, new)


def _change(kind: str, live: dict[str, Any], patch: Any, types: ObjectTypes) -> Any:
    if kind == "json":
        return json_patch.apply(live, patch)
    if kind == "merge":
        return merge_patch.apply(live, patch)
    if types.patch is None:
        raise InputFault("custom resources know no strategic merge patch: use --type merge, json or apply")
    return strategic.apply(live, patch, types.patch)
