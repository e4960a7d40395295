"""Which kinds are known, and what judges an object of each: a release's definitions, generated rules, CRDs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.json import Json
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.builtin import BuiltinSchema, compile_builtin
from apimachinery.schema.node import SchemaNode
from kubewright.source.releases import definitions as read_definitions
from kubewright.tools.validate.unusable import UnusableSchema

if TYPE_CHECKING:
    from kubewright.tools.validate.custom import CustomKind

GVK = "x-kubernetes-group-version-kind"
_CONFIGURATION = (
    "kind.x-k8s.io",
    "kubeadm.k8s.io",
    "config.k8s.io",
    "audit.k8s.io",
    "client.authentication.k8s.io",
    "k3d.io",
    "skaffold",
    "ctlptl.dev",
    "eksctl.io",
    "config.kubernetes.io",
    "controller-runtime.sigs.k8s.io",
    "backstage.io",
    "builtin",
    "minikube.k8s.io",
)
"""Ends of the groups of files that programs read: kind, kubeadm, kubelet, kube-apiserver, …"""


@dataclass(frozen=True, slots=True)
class BuiltinKind:
    """A kind of the release: its schema, and what the generated package knows next to it."""

    schema: BuiltinSchema
    inner_schema: SchemaNode | None
    namespaced: bool | None
    typed_form: Callable[[Json], None] | None
    default: Callable[[Json], None] | None
    strategy: Strategy | None
    validate: Callable[[Json, Json | None], list[FieldError]] | None
    is_resource: bool
    is_stored: bool = True
    """Reviews are asked and answered; nobody names them."""


@dataclass(slots=True)
class Kinds:
    """Every known kind by (apiVersion, kind); compiled when first asked for."""

    release: str
    package: str = "kubernetes_api"
    _crds: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    """Every definition of a kind: a repository may hold the one that a program wrote and the one that is applied."""
    _others: dict[tuple[str, str], list[CustomKind | UnusableSchema]] = field(default_factory=dict)
    _made: dict[tuple[str, str], BuiltinKind | CustomKind | UnusableSchema | None] = field(
        default_factory=dict
    )
    _definitions: Mapping[str, Json] = field(default_factory=dict)
    _names: dict[tuple[str, str], str] = field(default_factory=dict)

    def load(self) -> None:
        """Reads the release's definitions. Raises ``LookupError`` where there are none."""
        definitions = read_definitions(self.release)
        if definitions is None:
            raise LookupError(self.release)
        self._definitions = definitions
        for name, schema in definitions.items():
            for gvk in schema.get(GVK, ()):
                api_version = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
                known = self._names.get((api_version, gvk["kind"]))
                # Types of the apimachinery are registered for every group; the group's own type is meant.
                if known is None or known.startswith("io.k8s.apimachinery"):
                    self._names[api_version, gvk["kind"]] = name

    def add_crd(self, crd: Any) -> bool:
        """Makes the kinds of a CRD known; False for what is not a CRD with group, kind and versions."""
        spec = crd.get("spec") if isinstance(crd, dict) else None
        if not isinstance(spec, dict) or crd.get("kind") != "CustomResourceDefinition":
            return False
        names, versions = spec.get("names"), spec.get("versions")
        if not isinstance(names, dict) or not isinstance(versions, list):
            return False
        for version in versions:
            if isinstance(version, dict):
                key = f"{spec.get('group')}/{version.get('name')}", str(names.get("kind"))
                known = self._crds.setdefault(key, [])
                if not any(each["spec"] == spec for each in known):
                    known.insert(0, crd)
        return True

    def find(self, api_version: str, kind: str) -> BuiltinKind | CustomKind | None:
        """The kind; ``None`` where nobody describes it. Raises ``UnusableSchema``."""
        key = (api_version, kind)
        if key not in self._made:
            self._made[key] = self._make(api_version, kind)
        found = self._made[key]
        if isinstance(found, UnusableSchema):
            raise found
        return found

    def other_definitions(self, api_version: str, kind: str) -> Iterator[CustomKind]:
        """The kind by the other definitions that were given of it, each compiled when it is asked for."""
        from kubewright.tools.validate.custom import CustomKind, compile_kind

        made = self._others.setdefault((api_version, kind), [])
        for number, crd in enumerate(self._crds.get((api_version, kind), [])[1:]):
            if number == len(made):
                made.append(compile_kind(crd, api_version))
            if isinstance(known := made[number], CustomKind):
                yield known

    def forget_missing(self) -> None:
        """Looks up again, when asked, what nobody described so far."""
        self._made = {key: known for key, known in self._made.items() if known is not None}

    def versions_of(self, kind: str) -> list[str]:
        """The apiVersions that have a kind of that name."""
        return sorted({version for version, name in (*self._names, *self._crds) if name == kind})

    def names(self, api_version: str) -> list[str]:
        """The names of the kinds of a group, of all kinds where the group has none."""
        group = api_version.rpartition("/")[0]
        all_known = [*self._names, *self._crds]
        own = sorted({kind for version, kind in all_known if version.rpartition("/")[0] == group})
        if own and group:
            return own
        return sorted({kind for _, kind in all_known}) if "." not in group else []

    def definition(self, api_version: str, kind: str) -> str | None:
        """The name of a built-in kind's definition."""
        return self._names.get((api_version, kind))

    def is_configuration(self, api_version: str, kind: str) -> bool:
        """Whether a document is read by a program from a file, and never sent to a server."""
        if (api_version, kind) in self._names or (api_version, kind) in self._crds:
            return False
        group = api_version.rpartition("/")[0]
        return (api_version, kind) == ("v1", "Config") or group.endswith(_CONFIGURATION)

    def _make(self, api_version: str, kind: str) -> BuiltinKind | CustomKind | UnusableSchema | None:
        name = self._names.get((api_version, kind))
        if name is not None:  # a server serves its own kinds, whatever a definition says of them
            return self._builtin(api_version, kind, name)
        crds = self._crds.get((api_version, kind))
        if not crds:
            return None
        from kubewright.tools.validate.custom import compile_kind

        # A refused definition, such as one of a design's draft, does not stand in the way of a good one.
        first = compile_kind(crds[0], api_version)
        if isinstance(first, UnusableSchema):
            return next(self.other_definitions(api_version, kind), first)
        return first

    def _builtin(self, api_version: str, kind: str, name: str) -> BuiltinKind:
        schema = compile_builtin(name, self._definitions)
        inner = f"{name.rpartition('.')[0]}.JSONSchemaProps"
        inner_node = (
            compile_builtin(inner, self._definitions).node
            if kind == "CustomResourceDefinition" and inner in self._definitions
            else None
        )
        generated = _Generated(self.package)
        resource = generated.resource(api_version, kind)
        return BuiltinKind(
            schema=schema,
            inner_schema=inner_node,
            namespaced=None if resource is None else resource.namespaced,
            typed_form=generated.typed_form(name) if resource is not None else None,
            default=generated.entry(api_version, "defaults", "DEFAULTERS", kind),
            strategy=generated.entry(api_version, "strategies", "STRATEGIES", kind),
            validate=generated.entry(api_version, "validation", "VALIDATORS", kind),
            is_resource="metadata" in schema.node.properties and "items" not in schema.node.properties,
            is_stored=resource is None or "get" in resource.verbs,
        )


@dataclass(frozen=True, slots=True)
class _Generated:
    """What the generated package says; everything is absent where it is not installed."""

    package: str

    def _modules(self) -> Mapping[str, str]:
        if find_spec(self.package) is None:
            return {}
        modules: Mapping[str, str] = import_module(f"{self.package}.registry").GROUP_VERSIONS
        return modules

    def entry(self, api_version: str, module: str, table: str, kind: str) -> Any:
        folder = self._modules().get(api_version)
        name = f"{self.package}.{folder}.{module}"
        if folder is None or find_spec(name) is None:
            return None
        return getattr(import_module(name), table, {}).get(kind)

    def resource(self, api_version: str, kind: str) -> Any:
        folder = self._modules().get(api_version)
        name = f"{self.package}.{folder}.resources"
        if folder is None or find_spec(name) is None:
            return None
        return next((r for r in import_module(name).RESOURCES if r.kind == kind), None)

    def typed_form(self, definition: str) -> Callable[[Json], None] | None:
        definitions = _package_definitions(self.package)
        if definition not in definitions or find_spec(f"{self.package}.zero_values") is None:
            return None
        from apimachinery.schema.typed_form import compile_typed_form

        zero_values = import_module(f"{self.package}.zero_values").ZERO_VALUES
        return compile_typed_form(definition, definitions, zero_values)


@cache
def _package_definitions(package: str) -> Mapping[str, Json]:
    path = Path(str(import_module(package).__file__)).parent / "definitions.json"
    found: Mapping[str, Json] = msgspec.json.decode(path.read_bytes())
    return found
