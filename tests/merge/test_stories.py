"""Server-side apply as stories in data: stories/apply.yaml and stories/versions.yaml say what happens."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.merge import merge_patch
from apimachinery.merge.apply import FieldOwnership, keep_times
from apimachinery.merge.errors import Conflicts, MergeError, UnknownVersion
from apimachinery.merge.field_set import from_paths, paths
from apimachinery.merge.fields_v1 import path_text
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.merge.typed import MergeType

FOLDER = Path(__file__).parent / "stories"
APPLY = yaml.load((FOLDER / "apply.yaml").read_text(), yaml.CSafeLoader)
VERSIONS = yaml.load((FOLDER / "versions.yaml").read_text(), yaml.CSafeLoader)


class Told:
    """A story under way: one object, written through the versions of its kind."""

    def __init__(self, schema: dict[str, Any], ignored: list[list[str]] | None = None) -> None:
        self.schema = schema
        self.ignored = ignored or []
        self.live: dict[str, Any] | None = None
        self.seconds = 0

    def type_of(self, api_version: str) -> MergeType:
        fields = dict(self.schema)
        if api_version == "e.com/v2":
            fields["count"] = fields.pop("n")
        elif api_version != "e.com/v1":
            raise UnknownVersion(api_version)
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
        return custom_resource(schema)

    def convert(self, value: dict[str, Any], api_version: str) -> dict[str, Any]:
        self.type_of(api_version)
        spec = dict(value.get("spec") or {})
        old, new = ("count", "n") if api_version == "e.com/v1" else ("n", "count")
        if old in spec:
            spec[new] = spec.pop(old)
        out = {**value, "apiVersion": api_version}
        if "spec" in value:
            out["spec"] = spec if value["spec"] is not None else None
        return out

    def ownership(self, api_version: str) -> FieldOwnership:
        ignored = {version: from_paths(self.ignored) for version in ("e.com/v1", "e.com/v2")}
        return FieldOwnership(
            api_version=api_version,
            kind="Thing",
            type=self.type_of(api_version),
            converter=self,
            ignored=ignored if self.ignored else None,
        )

    def do(self, step: dict[str, Any]) -> None:
        """One operation; checks the conflicts, the error or the absence of a change that the step tells."""
        self.seconds += 1
        now = f"2026-01-01T00:00:{self.seconds:02d}Z"
        version = f"e.com/{step.get('at', 'v1')}"
        before = copy.deepcopy(self.live)
        live = None if self.live is None else self.convert(self.live, version)
        if "change" in step:
            self.schema = {**self.schema, **step["change"]}
            return
        if "rewrite" in step:
            assert self.live is not None
            for entry in self.live["metadata"]["managedFields"]:
                if entry["manager"] in step["rewrite"]:
                    entry["apiVersion"] = f"e.com/{step['rewrite'][entry['manager']]}"
            return
        try:
            new = self.written(step, live, version, now)
        except Conflicts as refused:
            told = {
                key: sorted(c.path for c in refused.conflicts if _key(c.manager, c.operation) == key)
                for key in dict.fromkeys(_key(c.manager, c.operation) for c in refused.conflicts)
            }
            assert told == step.get("conflicts"), refused
            assert [cause.field for cause in refused.causes] == [c.path for c in refused.conflicts]
        except MergeError as refused:
            _, _, detail = refused.message.partition("Kind=Thing): ")
            assert detail == step.get("error"), refused
        else:
            assert not {"conflicts", "error"} & step.keys(), "this should have been refused"
            if step.get("unchanged"):
                assert new == live
            self.live = self.convert(new, "e.com/v1")
        if "conflicts" in step or "error" in step:
            assert self.live == before, "a refusal changed the object"

    def written(self, step: dict[str, Any], live: Any, version: str, now: str) -> dict[str, Any]:
        ownership = self.ownership(version)
        bare: dict[str, Any] = {"apiVersion": version, "kind": "Thing", "metadata": {"name": "t"}}
        if "apply" in step:
            applied = {**bare, "spec": step["spec"]}
            given = copy.deepcopy((live, applied))
            new = ownership.apply(live, applied, step["apply"], force=step.get("force", False), now=now)
            assert (live, applied) == given, "an argument was changed"
        elif "reset" in step:
            metadata = {**live["metadata"], "managedFields": [{}]}
            new = ownership.update(live, {**live, "metadata": metadata}, step["reset"], now=now)
        elif "merge" in step:
            patched = merge_patch.apply(live, {"spec": step["spec"]})
            new = ownership.update(live, patched, step["merge"], now=now)
        else:
            metadata = live["metadata"] if live is not None else bare["metadata"]
            new = ownership.update(
                live, {**bare, "metadata": metadata, "spec": step["spec"]}, step["update"], now=now
            )
        new = {**new, "metadata": {**new["metadata"], "uid": "u"}}
        return new if live is None else keep_times(live, new)

    def owners(self, *, versions: bool) -> dict[str, list[str]]:
        out = {}
        for entry in (self.live or {"metadata": {}})["metadata"].get("managedFields", []):
            key = _key(entry["manager"], entry["operation"])
            if versions:
                key += entry["apiVersion"].replace("e.com/", "@")
            out[key] = sorted(map(path_text, paths(entry["fieldsV1"])))
        return out


def _key(manager: str, operation: str) -> str:
    return f"{manager}!" if operation == "Update" else manager


def _told(owners: dict[str, list[str]]) -> dict[str, list[str]]:
    return {key: sorted(fields) for key, fields in owners.items()}


@pytest.mark.parametrize("story", APPLY["stories"], ids=lambda story: story["name"])
def test_apply(story: dict[str, Any]) -> None:
    told = Told(APPLY["schemas"][story["schema"]])
    for step in story["steps"]:
        told.do(step)
    assert (told.live or {}).get("spec") == story["object"]
    assert told.owners(versions=False) == _told(story["owners"])


@pytest.mark.parametrize("story", VERSIONS["stories"], ids=lambda story: story["name"])
def test_versions(story: dict[str, Any]) -> None:
    told = Told(VERSIONS["schema"], story.get("ignored"))
    for step in story["steps"]:
        told.do(step)
    assert (told.live or {}).get("spec") == story["object"]
    assert told.owners(versions=True) == _told(story["owners"])
