"""A generated package as a server reads it: its tables, definitions and resources, as they were in a release."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import resources as package_files
from typing import TYPE_CHECKING, Any, cast

from apimachinery.kinds.hooks import Json
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.from_openapi import METADATA_TYPES, builtin_table
from apimachinery.merge.schema import Struct, Type
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.import_faults import describe_import_fault
from apimachinery.meta.release import RELEASE, release_number
from apimachinery.meta.resources import Group, Resource
from apimachinery.schema.go_form import GoForms
from apimachinery.schema.struct_order import StructOrder
from apimachinery.schema.typed_form import compile_typed_form
from apimachinery.server.catalog.later_fields import LaterFields
from apimachinery.server.catalog.options import OptionError

if TYPE_CHECKING:
    from apimachinery.wire.protobuf import Messages


class ServedPackage:
    """One generated package; with a ``release`` its definitions are without the fields that later releases added."""

    def __init__(self, name: str, release: str = "") -> None:
        try:
            registry = importlib.import_module(f"{name}.registry")
        except ModuleNotFoundError as fault:
            raise OptionError(f"--packages: there is no generated package {name!r} ({fault})") from None
        self.name = name
        self._release = release
        self.groups: tuple[Group, ...] = registry.GROUPS
        self._forms: dict[str, Callable[[Json], None]] = {}
        self._conversions: dict[tuple[str, str, str], Callable[[Json], Json] | None] = {}
        self._modules: dict[str, str] = registry.GROUP_VERSIONS

    @cached_property
    def definitions(self) -> Mapping[str, Any]:
        """All definitions by name."""
        found: Mapping[str, Any] = json.loads(
            package_files.files(self.name).joinpath("definitions.json").read_bytes()
        )
        later = self._later
        return {
            name: {**schema, "properties": _without(schema["properties"], later[name])}
            if name in later
            else schema
            for name, schema in found.items()
        }

    @cached_property
    def _later(self) -> Mapping[str, frozenset[str]]:
        """The fields that releases after the one asked for added, by definition."""
        module = self.module("since") if self._release else None
        if module is None:
            return {}
        now = release_of(self._release)
        later = {
            name: frozenset(field for field, release in fields.items() if release_of(release) > now)
            for name, fields in module.FIELDS_SINCE.items()
        }
        return {name: fields for name, fields in later.items() if fields}

    def defaults_known(
        self, definition: str, default: Callable[[Json], None] | None
    ) -> Callable[[Json], None] | None:
        """A kind's defaults without those of fields that came after the release."""
        if default is None or self._later_fields is None:
            return default
        return self._later_fields.without(definition, default)

    @cached_property
    def _later_fields(self) -> LaterFields | None:
        # No default is declared for a field younger than that.
        described = not self._release or release_of(self._release) >= release_of(RELEASE)
        return None if described else LaterFields(self.definitions, self._later)

    @cached_property
    def merge_table(self) -> dict[str, Type]:
        """The merge schema of all definitions."""
        modules = [self.module_of(api_version, "merge_schema") for api_version in self._modules]
        if not any(modules):
            return {**METADATA_TYPES, **builtin_table(self.definitions)}
        table: dict[str, Type] = dict(METADATA_TYPES)
        for module in modules:
            table.update(getattr(module, "TYPES", {}))
        for name, fields in self._later.items():
            known = table.get(name)
            if isinstance(known, Struct):
                table[name] = replace(known, fields=_without(known.fields, fields))
        return table

    @cached_property
    def merge_types(self) -> MergeTypes:
        """The merge types by definition name."""
        return MergeTypes(self.merge_table)

    @cached_property
    def zero_values(self) -> Any:
        """The zero-value table of typed kinds; None where the package has none."""
        module = self.module("zero_values")
        return None if module is None else module.ZERO_VALUES

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The definitions as documents show them: string fields with the words they take."""
        module = self.module("enums")
        if module is None:
            return self.definitions
        found = dict(self.definitions)
        for name, fields in module.ENUMS.items():
            properties = dict(found[name].get("properties", {}))
            for field, words in fields.items():
                if field in properties and words:
                    properties[field] = _with_words(properties[field], words)
            found[name] = {**found[name], "properties": properties}
        return found

    @cached_property
    def go_forms(self) -> GoForms | None:
        """How Go prints the package's kinds; None where nobody knows."""
        module = self.module("go_types")
        return None if module is None else GoForms(module.STRUCTS)

    def go_names(self) -> Mapping[str, Mapping[str, str]]:
        """The names of fields' Go types, by definition and field."""
        module = self.module("go_types")
        found: Mapping[str, Mapping[str, str]] = {} if module is None else module.NAMES
        return found

    @cached_property
    def defaults(self) -> Mapping[str, Mapping[str, Any]]:
        """The values that documents state for fields that are left out, by definition and field."""
        module = self.module("enums")
        return (
            {} if module is None else cast(Mapping[str, Mapping[str, Any]], getattr(module, "DEFAULTS", {}))
        )

    def messages(self) -> Messages | None:
        """The protobuf form of the package's kinds; None where it knows no field numbers."""
        module = self.module("protobuf")
        if module is None:
            return None
        from apimachinery.wire.protobuf import Messages

        return Messages(self.definitions, module.FIELD_NUMBERS)

    @cached_property
    def struct_order(self) -> StructOrder | None:
        """The order of the fields of its kinds; None where it knows no field numbers."""
        module = self.module("protobuf")
        if module is None:
            return None
        go_types = self.module("go_types")
        return StructOrder(self.definitions, module.FIELD_NUMBERS, {} if go_types is None else go_types.MOVED)

    def conversion(self, kind: str, source: str, target: str) -> Callable[[Json], Json] | None:
        """The function from one version of a kind to another; None where there is none. Those written by hand win.
        A generated table holds all ordered pairs and is at the hub, which may be a third version."""
        pair = (kind, source, target)
        if pair not in self._conversions:
            self._conversions[pair] = next(
                (
                    function
                    for stem in ("hooks", "conversion")
                    for at in dict.fromkeys((target, source, *self._modules))
                    if (function := self.table(at, stem, "CONVERSIONS").get(pair)) is not None
                ),
                None,
            )
        return self._conversions[pair]

    def to_form(self, definition: str, obj: Json) -> None:
        """Brings an object into the typed form of a definition, where the package's kinds are typed."""
        if self.zero_values is None:
            return
        form = self._forms.get(definition)
        if form is None:
            form = compile_typed_form(definition, self.definitions, self.zero_values)
            self._forms[definition] = form
        form(obj)

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """All (apiVersion, kind) that the definitions register."""
        found = set()
        for definition in self.definitions.values():
            for gvk in definition.get("x-kubernetes-group-version-kind", ()):
                found.add((str(GroupVersion(gvk["group"], gvk["version"])), gvk["kind"]))
        return frozenset(found)

    def resources(self) -> Sequence[Resource]:
        """The resource table; of a resource without what is younger than the release."""
        return self._resources

    @cached_property
    def _resources(self) -> tuple[Resource, ...]:
        modules = (self.module_of(api_version, "resources") for api_version in self._modules)
        return tuple(
            self._of_release(resource)
            for module in modules
            if module is not None
            for resource in module.RESOURCES
        )

    def _of_release(self, resource: Resource) -> Resource:
        if not self._release:
            return resource
        now = release_of(self._release)
        later = any(is_later(sub.introduced, now) for sub in resource.subresources)
        if later:
            kept = tuple(sub for sub in resource.subresources if not is_later(sub.introduced, now))
            resource = replace(resource, subresources=kept)
        if is_later(resource.deprecated_in, now):
            resource = replace(resource, deprecated=False, deprecated_in="")
        return resource

    def module_of(self, api_version: str, stem: str) -> Any:
        """A module of a group-version; None where it was not generated."""
        folder = self._modules.get(api_version)
        return None if folder is None else self.module(f"{folder}.{stem}")

    def module(self, path: str) -> Any:
        """A module of the package; None where it was not generated."""
        name = f"{self.name}.{path}"
        if importlib.util.find_spec(name) is None:
            return None
        if not path.endswith(".hooks"):
            return importlib.import_module(name)
        try:  # the one module of a package that people write
            return importlib.import_module(name)
        except Exception as fault:
            raise OptionError(f"--packages: {describe_import_fault(name, fault)}") from fault

    def table(self, api_version: str, stem: str, name: str) -> Mapping[Any, Any]:
        """A table of such a module; empty where there is none."""
        found: Mapping[Any, Any] = getattr(self.module_of(api_version, stem), name, {})
        return found


def _without(fields: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _with_words(schema: Json, words: Sequence[str]) -> Json:
    """A field with the words that it takes: of a list or a map those of its items or values."""
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            return {**schema, inner: {**schema[inner], "enum": [*words]}}
    return {**schema, "enum": [*words]}


def is_later(text: str, release: tuple[int, ...]) -> bool:
    """Whether a release, where one is named, comes after another."""
    return bool(text) and release_of(text) > release


def release_of(text: str) -> tuple[int, ...]:
    """Reads a release. Raises OptionError."""
    try:
        return release_number(text)
    except ValueError:
        raise OptionError(f"--emulated-version: {text!r} is no release; use a form such as 1.36") from None
