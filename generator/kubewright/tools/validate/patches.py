"""Patches of kustomizations, judged by what they make of their targets.

A patch is wrong where it cannot be applied, or where its target has a fault after it that it did not have before.
Such a fault is shown where the patch says it, as far as the patch says it at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from apimachinery.merge import json_patch, merge_patch, strategic
from apimachinery.merge.errors import MergeError
from apimachinery.merge.package import package_types
from apimachinery.meta.json import Json
from kubewright.diagnostics import Diagnostic, Severity
from kubewright.location import Location, escape_pointer
from kubewright.source.text import positions_of
from kubewright.tools.inputs.kustomize import Applied, Builder, Kustomization, Patch, PatchRefused
from kubewright.tools.inputs.projects import LEFT_OUT
from kubewright.tools.validate.check import CheckOptions, Judgement, judge, subject_of
from kubewright.tools.validate.inputs import Chunk
from kubewright.tools.validate.kinds import Kinds

REFUSED = "V042"


@dataclass(slots=True)
class BuiltProject:
    """The kustomizations of a project, built: what its patches do, and what its objects become."""

    kinds: Kinds
    options: CheckOptions
    builder: Builder
    _judge: _Judged = field(init=False)

    def __post_init__(self) -> None:
        self._judge = _Judged(self.kinds, self.options)

    @classmethod
    def of(
        cls, kustomizations: Mapping[str, Kustomization], kinds: Kinds, options: CheckOptions
    ) -> BuiltProject:
        """Builds all of them."""
        builder = Builder(kustomizations, lambda obj, patch: apply(obj, patch, kinds))
        builder.build_all()
        return cls(kinds, options, builder)

    def findings(self) -> list[Diagnostic]:
        """The findings of all patches, and one note for the patches of a kustomization that have no target here."""
        found: dict[Diagnostic, None] = {}
        for applied in self.builder.applied:
            found.update(dict.fromkeys(self._judge.findings(applied)))
        lacking: dict[str, list[Patch]] = {}
        for kustomization, patch in self.builder.unmatched():
            lacking.setdefault(kustomization.chunk.file, []).append(patch)
        for file, patches in lacking.items():
            said = f"{len(patches)} patches" if len(patches) > 1 else "a patch"
            text = f"{said} without a target among the files here: not judged"
            found[Diagnostic(LEFT_OUT, Severity.NOTE, text, Location(file))] = None
        return list(found)

    def settled(self, chunk: Chunk, judgement: Judgement) -> list[Diagnostic]:
        """The findings of a document that are left once kustomizations have made of it what somebody applies."""
        name = os.path.normpath(chunk.file)
        left = judgement.findings
        for (file, line, _), objects in self._of_file(name):
            if left and file == name and line == chunk.line:
                known = [{each.message for each in self._judge.of(obj)} for obj in objects]
                left = [f for f in left if f.code != "V020" or all(f.message in each for each in known)]
        return left

    def _of_file(self, name: str) -> list[tuple[tuple[str, int, int], list[Json]]]:
        return [(origin, objects) for origin, objects in self.builder.built.items() if origin[0] == name]


def apply(obj: Json, patch: Any, kinds: Kinds) -> Json | None:
    """An object with a patch on it, as kustomize applies it: custom resources know no strategic merge patch. Raises
    ``PatchRefused``."""
    try:
        if isinstance(patch, list):
            changed = json_patch.apply(obj, patch)
        elif not isinstance(patch, dict):
            raise PatchRefused("a patch is an object, or a list of operations")
        elif patch.get("$patch") == "delete":
            return None
        elif (definition := kinds.definition(str(obj.get("apiVersion")), str(obj.get("kind")))) is None:
            changed = merge_patch.apply(obj, {k: v for k, v in patch.items() if k != "$patch"})
        else:
            changed = strategic.apply(obj, patch, package_types(kinds.package).patch_type(definition))
    except MergeError as error:
        raise PatchRefused(
            error.detail if isinstance(error, json_patch.JsonPatchFailed) else error.message
        ) from None
    if not isinstance(changed, dict):
        raise PatchRefused("nothing of the object is left")
    return changed


class _Judged:
    def __init__(self, kinds: Kinds, options: CheckOptions) -> None:
        self._kinds = kinds
        self._options = replace(options, ignore_missing_schemas=True)
        self._of_text = cache(self._judge)

    def findings(self, applied: Applied) -> list[Diagnostic]:
        patch, subject = applied.patch, subject_of(applied.before, "")
        if applied.after is None:
            place = _place(patch, _operation(patch, applied.refusal))
            return [
                Diagnostic(
                    REFUSED,
                    Severity.ERROR,
                    f"the patch does not fit: {applied.refusal}",
                    place,
                    subject=subject,
                )
            ]
        known = {each.message for each in self.of(applied.before)}
        return [
            replace(
                each,
                location=_place(patch, _in_patch(patch.value, applied.after, each.location.pointer)),
                subject=subject,
            )
            for each in self.of(applied.after)
            if each.message not in known and each.severity is not Severity.NOTE
        ]

    def of(self, obj: Json) -> tuple[Diagnostic, ...]:
        """The findings of one object."""
        return self._of_text(json.dumps(obj))

    def _judge(self, text: str) -> tuple[Diagnostic, ...]:
        return tuple(judge(Chunk("", 0, text.encode()), self._kinds, self._options).findings)


def _operation(patch: Patch, refusal: str) -> str:
    """The operation of a JSON patch that was refused, as a pointer into it."""
    if not isinstance(patch.value, list):
        return ""
    for index, operation in enumerate(patch.value):
        if isinstance(operation, dict) and str(operation.get("path")) in refusal:
            return f"/{index}"
    return ""


def _in_patch(patch: Any, after: Json, pointer: str) -> str:
    """The pointer into a patch that sets what the patched object has at ``pointer``, or what encloses that."""
    if isinstance(patch, list):
        near = [
            (len(str(operation.get("path"))), index)
            for index, operation in enumerate(patch)
            if isinstance(operation, dict)
            and (
                pointer.startswith(str(operation.get("path")))
                or str(operation.get("path")).startswith(pointer)
            )
        ]
        return f"/{max(near)[1]}" if near else ""
    place = ""
    inner: Any = after
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(inner, list) and key.isdigit() and int(key) < len(inner):
            inner = inner[int(key)]
            index = _same(patch, inner)
            if index is None:
                break
            patch, place = patch[index], f"{place}/{index}"
        elif isinstance(patch, dict) and key in patch and isinstance(inner, dict):
            patch, inner, place = patch[key], inner.get(key), f"{place}/{escape_pointer(key)}"
        else:
            break
    return place


def _same(patch: Any, item: Any) -> int | None:
    """The item of a list of a patch that an item of the object is made from: the one that says nothing else."""
    for index, each in enumerate(patch if isinstance(patch, list) else ()):
        if each == item:
            return index
        if isinstance(each, dict) and isinstance(item, dict):
            scalars = {
                k: v for k, v in each.items() if not isinstance(v, dict | list) and not k.startswith("$")
            }
            if scalars and all(item.get(k) == v for k, v in scalars.items()):
                return index
    return None


def _place(patch: Patch, pointer: str) -> Location:
    """The place of a pointer into a patch; of one that is text in a kustomization, the place of that text."""
    nearest = patch.pointer if patch.pointer else pointer
    content = patch.outer.content if patch.pointer else patch.chunk.content
    positions = positions_of(content)
    while nearest and nearest not in positions:
        nearest = nearest.rpartition("/")[0]
    line, column = positions.get(nearest, (1, 1))
    return Location(patch.chunk.file, nearest, line + patch.chunk.line, column)
