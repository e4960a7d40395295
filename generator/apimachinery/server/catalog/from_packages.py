"""Generated packages as served resources: what of a package is served, and how its kinds are compiled.

A package's modules are imported when something of them is needed: the resource tables at the start, defaults,
validation, conversion and merge schema with the first request for a kind of their group-version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.kinds.builtin_hooks import HOOKS
from apimachinery.kinds.hooks import BUILTIN, Hooks, Json
from apimachinery.merge.errors import UnknownVersion
from apimachinery.merge.patch_type import PatchType
from apimachinery.merge.schema import Ref
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.resources import Resource
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import CustomSchema, compile_custom
from apimachinery.schema.go_form import GO_PACKAGES
from apimachinery.schema.interface import CompiledSchema
from apimachinery.schema.typed_form import compile_typed_form
from apimachinery.schema.unfolding import unfold
from apimachinery.server.catalog.annotated import Annotated
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.factory import KindVersions, deprecation, unowned_by_main, unowned_by_status
from apimachinery.server.catalog.family import BUILT_IN
from apimachinery.server.catalog.options import ApiOptions, OptionError
from apimachinery.server.catalog.other_versions import ConvertedHooks, with_checks_of
from apimachinery.server.catalog.served import Behaviour, Change, Compiled, Served, StoredAs
from apimachinery.server.catalog.served_package import ServedPackage, is_later, release_of
from apimachinery.storage.layout import is_reserved, package_prefix
from apimachinery.wire.json import decode, encode


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
    release = release_of(options.emulated_version)
    if is_later(resource.introduced, release):
        return False
    if resource.removed_in and release_of(resource.removed_in) <= release:
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
