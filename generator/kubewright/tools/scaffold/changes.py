"""What changes in a version of a kind: a field is renamed or cut in several, the version is stored, or is the hub."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apimachinery.conversion.moves import move, split
from kubewright.ir.versions import version_priority
from kubewright.tools.scaffold import release_plan
from kubewright.tools.scaffold.contents import find_kind, sample_of
from kubewright.tools.scaffold.conversion_file import ConversionFile, find_conversions
from kubewright.tools.scaffold.crd_fields import FieldPath, Json, rename_in, split_in
from kubewright.tools.scaffold.editing import place_of, read, replaced
from kubewright.tools.scaffold.writing import FilePlan, RefusedError
from kubewright.tools.validate.custom import judge_crd


@dataclass(frozen=True, slots=True)
class KindFile:
    """The CRD of a kind in the folder of a group."""

    folder: Path
    path: Path
    crd: Json
    text: str

    @classmethod
    def of(cls, kind: str, group: str, folder: Path) -> KindFile:
        """Finds it. Raises ``RefusedError``."""
        return cls(folder, *find_kind(kind, group, folder))

    @property
    def kind(self) -> str:
        """The kind."""
        return str(self.crd["spec"]["names"]["kind"])

    @property
    def group(self) -> str:
        """Its group."""
        return str(self.crd["spec"]["group"])

    @property
    def versions(self) -> list[str]:
        """The names of its versions, the oldest first."""
        return sorted((entry["name"] for entry in self.crd["spec"]["versions"]), key=version_priority)

    def api_version(self, version: str) -> str:
        """The apiVersion of one of them."""
        return f"{self.group}/{version}"

    def entry(self, version: str) -> tuple[int, Json]:
        """A version's entry and its index. Raises ``RefusedError``."""
        for index, entry in enumerate(self.crd["spec"]["versions"]):
            if entry["name"] == version:
                return index, entry
        raise RefusedError(
            f"{place_of(self.path, '/spec/versions')}: {self.kind} has no version {version}",
            f"it has {', '.join(self.versions)}",
        )

    def place(self, version: str) -> str:
        """Where a version is, for messages."""
        return place_of(self.path, f"/spec/versions/{self.entry(version)[0]}")

    def conversions(self) -> ConversionFile | None:
        """How its versions become each other."""
        return find_conversions(self.folder, self.kind, self.group)

    def write_to(self, plan: FilePlan, spec: Json) -> None:
        """Adds the edit by which the CRD has another spec. Raises ``RefusedError`` where a server would refuse it for
        something that it had nothing against before."""
        changed = self.crd | {"spec": spec}
        before, after = ({str(each) for each in judge_crd(copy.deepcopy(crd))} for crd in (self.crd, changed))
        if after - before:
            raise RefusedError(
                f"{self.path}: a server would refuse it then: {min(after - before)}",
                "change by hand what speaks of the field, such as a rule of x-kubernetes-validations",
            )
        replaced(plan, self.path, self.crd, self.text, changed)


def rename_field(kind: KindFile, version: str, old: str, new: str) -> FilePlan:
    """A field of a version under another name: schema, what names it by its path, sample, conversions."""
    here = FieldPath(old)
    there = here.beside(new)
    plan = _changed(
        kind,
        version,
        here,
        lambda entry, place: rename_in(entry, here, there, place),
        lambda sample: move(sample, old, new),
        lambda rules, api_version: rules.rename(api_version, old, new),
    )
    plan.notes.append(f"next: kubewright generate; programs that use {here.text} of {version} are yours")
    return plan


def split_field(kind: KindFile, version: str, old: str, parts: list[str], separator: str) -> FilePlan:
    """A string of a version cut in several: schema, what names it by its path, sample, conversions."""
    here = FieldPath(old)
    there = [here.beside(part) for part in parts]
    if not separator:
        raise RefusedError("--separator is required", "the text between the parts, such as ':'")
    if len({part.text for part in there}) < 2 or len({part.text for part in there}) != len(there):
        raise RefusedError("a field is split in two parts or more, each with a name of its own")
    plan = _changed(
        kind,
        version,
        here,
        lambda entry, place: split_in(entry, here, there, separator, place),
        lambda sample: split(sample, old, parts, separator),
        lambda rules, api_version: rules.split(api_version, old, parts, separator),
    )
    plan.notes.append(f"next: kubewright generate; say in {kind.path} what holds for each part")
    return plan


def store_version(kind: KindFile, version: str, release: str) -> FilePlan:
    """Another version is stored: flags of the CRD, and the release plan. Raises ``RefusedError``."""
    _, entry = kind.entry(version)
    if entry.get("storage"):
        raise RefusedError(f"{kind.place(version)}: {version} is stored already", code=1)
    if entry.get("served") is False:
        raise RefusedError(f"{kind.place(version)}: {version} is not served", "serve it first")
    plan = FilePlan()
    spec = copy.deepcopy(kind.crd["spec"])
    stored = next((each["name"] for each in spec["versions"] if each.get("storage")), "")
    for each in spec["versions"]:
        each["storage"] = each["name"] == version
    kind.write_to(plan, spec)
    changes = {(kind.api_version(version), kind.kind): {"storage": release}}
    was = release_plan.entry_of(kind.folder, kind.kind, kind.api_version(stored)) if stored else {}
    if was and not was.get("storage"):
        changes[kind.api_version(stored), kind.kind] = {"storage": str(was.get("introduced"))}
    release_plan.change_entries(plan, kind.folder, changes)
    release_plan.check_policy(plan, kind.folder)
    plan.notes.append(
        f"objects that are stored as {stored} stay so until they are written again; before {stored} goes:\n"
        "  kubewright migrate --from-cluster --write"
    )
    return plan


def make_hub(kind: KindFile, version: str) -> FilePlan:
    """Another version is the one that all are converted through. Raises ``RefusedError``."""
    kind.entry(version)
    rules = kind.conversions()
    if rules is None:
        raise RefusedError(
            f"{kind.folder / 'conversions'} has no conversions of {kind.kind}", "there is no hub"
        )
    plan, old = FilePlan(), rules.hub
    rules.make_hub(kind.api_version(version))
    group, _, was = old.rpartition("/")
    if group == kind.group and was not in kind.versions:
        told = release_plan.entry_of(kind.folder, kind.kind, old).get("removed")
        rules.remove(old, str(told or release_plan.next_release(kind.folder)))
    rules.write_to(plan)
    plan.notes.append("next: kubewright generate")
    return plan


def _changed(
    kind: KindFile,
    version: str,
    field: FieldPath,
    of_entry: Callable[[Json, str], Json],
    of_object: Callable[[Any], None],
    of_rules: Callable[[ConversionFile, str], None],
) -> FilePlan:
    """A change of one field of a version. Raises ``RefusedError``."""
    index, entry = kind.entry(version)
    place = kind.place(version)
    if entry.get("storage"):
        raise RefusedError(
            f"{place}: {version} is the storage version: objects are stored with {field.text}, and none is converted "
            "on the way out of storage",
            f"begin a version and change that one: kubewright scaffold version VERSION --kind {kind.kind}",
        )
    if entry.get("deprecated"):
        raise RefusedError(f"{place}: {version} is deprecated", "change the version that follows it")
    plan = FilePlan()
    spec = copy.deepcopy(kind.crd["spec"])
    spec["versions"][index] = of_entry(entry, place)
    kind.write_to(plan, spec)
    sample = sample_of(kind.folder, kind.path, kind.crd, version)
    old, text = read(sample)
    new = copy.deepcopy(old)
    of_object(new)
    replaced(plan, sample, old, text, new)
    rules = kind.conversions()
    if rules is None:
        raise RefusedError(
            f"{kind.folder / 'conversions'} has no conversions of {kind.kind}",
            "see docs/rules.md, Conversions",
        )
    of_rules(rules, kind.api_version(version))
    rules.write_to(plan)
    return plan
