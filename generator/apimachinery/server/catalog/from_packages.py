"""Generated packages as served resources: what of a package is served, and how its kinds are compiled.

A package's modules are imported when something of them is needed: the resource tables at the start, defaults,
validation, conversion and merge schema with the first request for a kind of their group-version.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import resources as package_files
from typing import TYPE_CHECKING, Any, cast

from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.kinds.builtin_hooks import HOOKS
from apimachinery.kinds.hooks import BUILTIN, Hooks, Json
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import UnknownVersion
from apimachinery.merge.from_openapi import METADATA_TYPES, builtin_table
from apimachinery.merge.patch_type import PatchType
from apimachinery.merge.schema import Ref, Struct, Type
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.import_faults import describe_import_fault
from apimachinery.meta.release import RELEASE, release_number
from apimachinery.meta.resources import Group, Resource
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import CustomSchema, compile_custom
from apimachinery.schema.go_form import GO_PACKAGES, GoForms
from apimachinery.schema.interface import CompiledSchema
from apimachinery.schema.struct_order import StructOrder
from apimachinery.schema.typed_form import compile_typed_form
from apimachinery.schema.unfolding import unfold
from apimachinery.server.catalog.annotated import Annotated
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.factory import KindVersions, deprecation, unowned_by_main, unowned_by_status
from apimachinery.server.catalog.family import BUILT_IN
from apimachinery.server.catalog.later_fields import LaterFields
from apimachinery.server.catalog.options import ApiOptions, OptionError
from apimachinery.server.catalog.other_versions import ConvertedHooks, with_checks_of
from apimachinery.server.catalog.served import Behaviour, Change, Compiled, Served, StoredAs
from apimachinery.storage.layout import is_reserved, package_prefix
from apimachinery.wire.json import decode, encode

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
        now = _release(self._release)
        later = {
            name: frozenset(field for field, release in fields.items() if _release(release) > now)
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
        described = not self._release or _release(self._release) >= _release(RELEASE)
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
        now = _release(self._release)
        later = any(_is_later(sub.introduced, now) for sub in resource.subresources)
        if later:
            kept = tuple(sub for sub in resource.subresources if not _is_later(sub.introduced, now))
            resource = replace(resource, subresources=kept)
        if _is_later(resource.deprecated_in, now):
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


def add_package(catalog: Catalog, package: ServedPackage, options: ApiOptions) -> None:
    """Puts a package's resources into a catalog, those that the options ask for."""
    chosen = [resource for resource in package.resources() if is_served(resource, options)]
    storage = _storage_versions(package)
    for group in package.groups:
        _check_group(catalog, package, group.name)
        found = [_serve(package, resource, storage) for resource in chosen if resource.group == group.name]
        versions = tuple(v for v in group.versions if any(served.version == v for served in found))
        if versions:
            _check_prefixes(package, found)
            catalog.add_group(group, versions, found)


def _check_group(catalog: Catalog, package: ServedPackage, group: str) -> None:
    """Sees to it that the keys of a package's objects are nobody else's. Raises OptionError."""
    if is_reserved(group):
        raise OptionError(f"--packages: {package.name} has a group {group!r}, whose keys are Kubernetes' own")
    if (other := catalog.claimed.setdefault(group, package.name)) != package.name:
        raise OptionError(
            f"--packages: {package.name} has the group {group!r}, and {other} has it too; leave one of the packages "
            "out, or generate both into one"
        )


def _check_prefixes(package: ServedPackage, found: Iterable[Served]) -> None:
    """Sees to it that two resources have the same keys only if they are versions of one kind. Raises OptionError."""
    kinds: dict[str, Served] = {}
    for served in found:
        first = kinds.setdefault(served.prefix, served)
        if served.prefix and first.kind != served.kind:
            raise OptionError(
                f"--packages: {package.name} has {served.plural} of {served.group} twice: {first.kind} in "
                f"{first.version} and {served.kind} in {served.version}"
            )


def is_served(resource: Resource, options: ApiOptions) -> bool:
    """Whether a server of the emulated release serves a resource, with ``--runtime-config`` heard."""
    release = _release(options.emulated_version)
    if _is_later(resource.introduced, release):
        return False
    if resource.removed_in and _release(resource.removed_in) <= release:
        return False
    config = options.runtime_config
    version = resource.api_version if resource.group else f"core/{resource.version}"
    stage = "alpha" if "alpha" in resource.version else "beta" if "beta" in resource.version else "ga"
    for key in (
        f"{resource.api_version}/{resource.plural}",
        resource.api_version,
        version,
        f"api/{stage}",
        "api/all",
    ):
        if key in config:
            return config[key]
    return resource.served


def _with_words(schema: Json, words: Sequence[str]) -> Json:
    """A field with the words that it takes: of a list or a map those of its items or values."""
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            return {**schema, inner: {**schema[inner], "enum": [*words]}}
    return {**schema, "enum": [*words]}


def _is_later(text: str, release: tuple[int, ...]) -> bool:
    return bool(text) and _release(text) > release


def _release(text: str) -> tuple[int, ...]:
    try:
        return release_number(text)
    except ValueError:
        raise OptionError(f"--emulated-version: {text!r} is no release; use a form such as 1.36") from None


def _storage_versions(package: ServedPackage) -> dict[tuple[str, str], tuple[str, str]]:
    """For each (group, kind) the (group, apiVersion) it is stored at."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for resource in package.resources():
        place = (resource.group, resource.kind)
        if resource.storage or place not in found:
            found[place] = (resource.group, resource.api_version)
    # The two Event resources are one: kube-apiserver stores both at core/v1.
    if ("events.k8s.io", "Event") in found and ("", "Event") in found:
        found["events.k8s.io", "Event"] = found["", "Event"]
    return found


def _serve(
    package: ServedPackage, resource: Resource, storage: Mapping[tuple[str, str], tuple[str, str]]
) -> Served:
    group, stored_at = storage[resource.group, resource.kind]
    strategies = package.table(resource.api_version, "strategies", "STRATEGIES")
    strategy = strategies.get(resource.kind) or Strategy()
    hooks = _own_hooks(package, resource) or HOOKS.get((resource.group, resource.kind), BUILTIN)
    to_storage = _conversion(package, resource.kind, resource.api_version, stored_at)
    others = _other_versions(package, resource, stored_at, to_storage)
    stored = "get" in resource.verbs and "list" in resource.verbs and "create" in resource.verbs
    return Served(
        resource,
        Behaviour(BUILT_IN, strategy, with_checks_of(hooks, others) if others else hooks),
        StoredAs(
            package_prefix(group, resource.plural) if stored or "list" in resource.verbs else "",
            stored_at,
            to_storage=to_storage,
            from_storage=_conversion(package, resource.kind, stored_at, resource.api_version),
        ),
        lambda: _compile(package, resource),
        warnings=_warnings(resource),
    )


def _own_hooks(package: ServedPackage, resource: Resource) -> Hooks | None:
    hooks: Hooks | None = package.table(resource.api_version, "hooks", "HOOKS").get(resource.kind)
    return hooks


def _other_versions(
    package: ServedPackage, resource: Resource, stored_at: str, to_storage: Change | None
) -> list[ConvertedHooks]:
    """The versions of a kind besides a resource's own that have hooks in the package, served or not."""
    found = []
    for other in package.resources():
        if (other.group, other.plural) != (resource.group, resource.plural) or other == resource:
            continue
        if hooks := _own_hooks(package, other):
            from_storage = _conversion(package, other.kind, stored_at, other.api_version)
            found.append(ConvertedHooks(hooks, tuple(filter(None, (to_storage, from_storage)))))
    return found


def subresource_kind(package: ServedPackage, resource: Resource, name: str) -> Served | None:
    """What a subresource takes and gives where that is a kind of its own (a TokenRequest), to read its bodies by; None
    where the package does not define it."""
    sub = next((sub for sub in resource.subresources if sub.name == name), None)
    if sub is None or not sub.kind:
        return None
    wanted = {"group": sub.group, "version": sub.version, "kind": sub.kind}
    for definition, schema in package.definitions.items():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            own = Resource(
                group=sub.group,
                version=sub.version,
                kind=sub.kind,
                plural=sub.kind.lower(),
                singular="",
                namespaced=resource.namespaced,
                verbs=sub.verbs,
                definition=definition,
            )
            key = (sub.group, sub.kind)
            return _serve(package, own, {key: (sub.group, own.api_version)})
    return None


def _warnings(resource: Resource) -> tuple[str, ...]:
    if not resource.deprecated and not resource.deprecated_in:
        return ()
    if resource.deprecation_warning:
        return (resource.deprecation_warning,)
    api_version, _, kind = resource.replacement.rpartition("/")
    return (
        deprecation(
            resource.api_version,
            resource.kind,
            since=resource.deprecated_in,
            until=resource.removed_in,
            instead=f"{api_version} {kind}" if resource.replacement else "",
        ),
    )


def _conversion(package: ServedPackage, kind: str, source: str, target: str) -> Change | None:
    if source == target:
        return None
    definitions = {other.api_version: other.definition for other in package.resources() if other.kind == kind}
    annotated = HOOKS.get((target.rpartition("/")[0], kind), BUILTIN).annotated
    default = None
    if annotated is not None and annotated[0] == target:
        # What annotations held has had no defaults yet.
        default = package.table(target, "defaults", "DEFAULTERS").get(kind)

    def change(obj: Json) -> Json:
        converted = convert(package, kind, source, target, obj)
        if default is not None:
            default(converted)
        package.to_form(definitions[target], converted)
        return converted

    return change


def convert(package: ServedPackage, kind: str, source: str, target: str, obj: Json) -> Json:
    """An object at another version, by the conversion that ``hooks.py`` or else the generator wrote. Raises
    UnknownVersion."""
    function = package.conversion(kind, source, target)
    if function is None:
        raise UnknownVersion(target)
    converted: Json = function(obj)
    return {**converted, "apiVersion": target, "kind": kind}


def _versions(package: ServedPackage, resource: Resource) -> KindVersions:
    """The versions of a built-in kind in its group."""
    definitions = {
        other.api_version: other.definition
        for other in package.resources()
        if (other.group, other.kind) == (resource.group, resource.kind)
    }

    def convert_to(value: Json, api_version: str) -> Json:
        copied: Json = decode(encode(value))
        return convert(package, resource.kind, value.get("apiVersion", ""), api_version, copied)

    return KindVersions(definitions, lambda name: package.merge_types.named(definitions[name]), convert_to)


def _compile(package: ServedPackage, resource: Resource) -> Compiled:
    definition = resource.definition
    to_form = None
    if package.zero_values is not None:
        to_form = compile_typed_form(definition, package.definitions, package.zero_values)
    fields = package.definitions[definition].get("properties", {})
    other = [name for name in fields if name not in ("apiVersion", "kind", "metadata", "status")]
    versions = _versions(package, resource)
    declared = package.table(resource.api_version, "defaults", "DEFAULTERS").get(resource.kind)
    hooks = HOOKS.get((resource.group, resource.kind), BUILTIN)
    defaulter = declared or hooks.default
    validator = package.table(resource.api_version, "validation", "VALIDATORS").get(resource.kind)
    if hooks.annotated is not None:
        hub, prefix = hooks.annotated
        through = Annotated(
            prefix,
            lambda obj: convert(package, resource.kind, resource.api_version, hub, obj),
            lambda obj: convert(package, resource.kind, hub, resource.api_version, obj),
        )
        if resource.api_version == hub:
            defaulter = through.defaulter_of_hub(defaulter)
        else:
            defaulter = through.defaulter(defaulter)
            of_hub = package.table(hub, "validation", "VALIDATORS").get(resource.kind)
            validator = through.validator(validator, of_hub)
    defaulter = package.defaults_known(definition, defaulter)
    schema: CompiledSchema
    stated = rules = scale = None
    if to_form is not None:
        schema = compile_builtin(definition, package.definitions, package.go_names)
    else:
        # No Go type is behind the kind: what its schema says is the rule, as it is for a CRD.
        whole = unfold(definition, package.definitions)
        schema = stated = compile_custom(whole)
        rules = compile_rules(whole)
        scale = _scale_paths(resource)
        defaulter = _default_by(stated, defaulter)
    return Compiled(
        schema=schema,
        merge_type=package.merge_types.named(definition),
        to_form=to_form,
        printed=_printer(package, resource) if to_form is not None else None,
        defaulter=defaulter,
        stated=stated,
        rules=rules,
        scale=scale,
        validator=validator,
        subresource_validators={
            subresource: validate
            for (kind, subresource), validate in package.table(
                resource.api_version, "validation", "SUBRESOURCE_VALIDATORS"
            ).items()
            if kind == resource.kind
        },
        converter=versions,
        in_struct_order=lambda obj: _in_order(package, definition, obj),
        patch_type=_once(lambda: PatchType(Ref(definition), package.merge_table)),
        main_ignored=unowned_by_main(versions.names, has_status=True, fields=hooks.unowned),
        status_ignored=unowned_by_status(versions.names, other, hooks.status_keeps),
    )


def _printer(package: ServedPackage, resource: Resource) -> Callable[[FieldError], FieldError]:
    """How faults of a kind are printed; the package's Go structs are read when there is a fault."""
    group = GO_PACKAGES.get(resource.group) or resource.group.partition(".")[0]

    def printed(fault: FieldError) -> FieldError:
        forms = package.go_forms
        return fault if forms is None else forms.printed(f"{group}.{resource.kind}", fault)

    return printed


def _in_order(package: ServedPackage, definition: str, obj: Json) -> Json:
    order = package.struct_order
    shown: Json = obj if order is None else order.ordered(obj, definition)
    return shown


def _scale_paths(resource: Resource) -> Json | None:
    """The paths that the scale subresource reads and writes, as a CRD names them."""
    for sub in resource.subresources:
        if sub.name == "scale" and sub.spec_replicas_path and sub.status_replicas_path:
            return {
                "specReplicasPath": sub.spec_replicas_path,
                "statusReplicasPath": sub.status_replicas_path,
                "labelSelectorPath": sub.label_selector_path,
            }
    return None


def _default_by(schema: CustomSchema, declared: Callable[[Json], None] | None) -> Callable[[Json], None]:
    """The schema's defaults, then the declared ones, which look at them; and those below what these put there."""

    def default(obj: Json) -> None:
        schema.default(obj)
        if declared is not None:
            declared(obj)
            schema.default(obj)

    return default


def _once(make: Callable[[], PatchType]) -> Callable[[], PatchType]:
    made: list[PatchType] = []

    def get() -> PatchType:
        if not made:
            made.append(make())
        return made[0]

    return get
