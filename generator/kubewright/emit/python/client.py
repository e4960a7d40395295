"""Typed clients: ``client.py`` and ``async_client.py`` of each group-version, one class a resource, and of the package.

A resource's class is made of the mixins of its verbs and scope (apimachinery.client.resource), so it has no method
that the server would refuse as unknown. Subresources other than status and scale become methods of their own; those
that upgrade the connection (attach, exec, portforward, proxy) are left to tools that speak those protocols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubewright.emit.code import names
from kubewright.emit.code.class_plans import Layout, ModulePlan
from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.render import docstring, header, module, render, string_literal
from kubewright.emit.interface import Options
from kubewright.emit.python.code.modes import MODES, Mode
from kubewright.ir.api import Api, Emitter, File, Resource, Subresource

UPGRADED = frozenset({"attach", "exec", "portforward", "proxy"})


@dataclass(frozen=True, slots=True)
class Mixin:
    """A mixin for a subresource, and the verbs without which it is not used."""

    name: str
    verbs: frozenset[str]


MIXED_IN = {
    "status": Mixin("StatusWritable", frozenset({"get", "update", "patch"})),
    "scale": Mixin("Scalable", frozenset({"get", "update", "patch"})),
    "log": Mixin("Loggable", frozenset({"get"})),
    "exec": Mixin("Executable", frozenset({"get"})),
}
_APPLYING = ("Editable", "StatusWritable")
ANSWERED_BY_STATUS = frozenset({"Binding", "Eviction"})
"""Kinds whose creation in a subresource the server answers with a Status, not with the object."""
_PARTS = (
    ("Readable", frozenset({"get", "list"})),
    ("Watchable", frozenset({"watch"})),
    ("Creatable", frozenset({"create"})),
    ("Editable", frozenset({"update", "patch", "delete"})),
    ("Purgeable", frozenset({"deletecollection"})),
)


def emitter(options: Options) -> Emitter:
    """The emitter of ``client.py``; nothing where the models are of another flavour."""
    return Clients(options)


@dataclass(frozen=True, slots=True)
class ResourceClient:
    """One class to write: its names, its mixins, and the methods of its other subresources."""

    kind: str
    attribute: str
    plural: str
    model: str
    mixins: tuple[str, ...]
    configuration: str
    methods: tuple[Method, ...]
    deprecated: str

    @property
    def parents(self) -> tuple[str, ...]:
        """The mixins with their types; those that apply take the apply configuration's too, as a forward
        reference, so that it is imported by type checkers alone."""
        return tuple(
            f'{mixin}[{self.model}, "{self.configuration}"]'
            if mixin.endswith(_APPLYING)
            else f"{mixin}[{self.model}]"
            for mixin in self.mixins
        )


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a subresource. ``form`` chooses its shape: read, replace, patch or create."""

    form: str
    name: str
    subresource: str
    literal: str
    model: str
    namespaced: bool
    answers: bool = True


@dataclass(frozen=True, slots=True)
class Clients:
    """The client modules of a package."""

    options: Options
    name: str = "client"

    def emit(self, api: Api) -> Iterable[File]:
        """``client.py`` of each group-version that serves something, and the package's own."""
        if self.options.models != "msgspec":
            return
        layout = lay_out(api)
        first_line = header(self.options.origins)
        served: dict[tuple[str, str], list[Resource]] = {}
        for resource in api.resources:
            if resource.definition in layout.place:
                served.setdefault((resource.group, resource.version), []).append(resource)
        groups = []
        for plan in layout.modules:
            resources = served.get((plan.group, plan.version))
            if not resources:
                continue
            imports: set[str] = set()
            configurations: set[str] = set()
            clients = [_client(r, plan.name, layout, imports, configurations) for r in resources]
            applied = configurations if any('"' in p for c in clients for p in c.parents) else set()
            group = {
                "module": plan.name,
                "class": names.class_name(plan.name),
                "docstring": docstring(f"The resources of {plan.api_version}.", 4),
                "title": docstring(f"The resources of {plan.api_version}, one at a time.", 4),
            }
            groups.append(group)
            for mode in MODES:
                text = self._group(first_line, plan, group, clients, imports, applied, mode)
                yield File(f"{plan.name}/{mode.stem}.py", text)
        for mode in MODES if groups else ():
            text = render(
                "client_package",
                header=first_line,
                docstring=docstring(f"A client of every group-version of this package, {mode.text}."),
                package=self.options.package,
                groups=groups,
                mode=mode,
            )
            yield File(f"{mode.stem}.py", module(text))

    def _group(
        self,
        first_line: str,
        plan: ModulePlan,
        group: dict[str, str],
        clients: list[ResourceClient],
        imports: set[str],
        applied: set[str],
        mode: Mode,
    ) -> str:
        methods = [method for client in clients for method in client.methods]
        return module(
            render(
                "client",
                header=first_line,
                docstring=docstring(f"Clients of {plan.api_version}, {mode.text}."),
                group=group,
                imports=_import_lines(self.options.package, plan.name, imports),
                configurations=_configuration_lines(self.options.package, plan.name, applied),
                clients=clients,
                has_replace=any(m.form == "replace" and m.namespaced for m in methods),
                has_patch=any(m.form == "patch" for m in methods),
                mode=mode,
            )
        )


def _import_lines(package: str, home: str, others: set[str]) -> list[str]:
    """The imports of models and resources, in isort's order (by module)."""
    lines = {f"{package}.{other}": f"from {package}.{other} import models as {other}" for other in others}
    lines[f"{package}.{home}"] = f"from {package}.{home} import models"
    lines[f"{package}.{home}.resources"] = f"from {package}.{home}.resources import RESOURCES"
    return [lines[name] for name in sorted(lines)]


def _client(
    resource: Resource, home: str, layout: Layout, imports: set[str], configurations: set[str]
) -> ResourceClient:
    scope = "Namespaced" if resource.namespaced else "Cluster"
    mixins = [f"{scope}{part}" for part, verbs in _PARTS if verbs <= set(resource.verbs)]
    for sub in resource.subresources:
        mixin = MIXED_IN.get(sub.name)
        if mixin is not None and mixin.verbs <= set(sub.verbs):
            mixins.append(f"{scope}{mixin.name}")
    return ResourceClient(
        kind=names.class_name(resource.kind),
        attribute=names.attribute_name(resource.plural),
        plural=string_literal(resource.plural),
        model=_model(layout.place[resource.definition], home, imports),
        mixins=tuple(mixins) or ("ResourceApi",),
        configuration=_configuration(layout.place[resource.definition], home, configurations),
        methods=tuple(_methods(resource, home, layout, imports)),
        deprecated=resource.deprecation_warning,
    )


def _configuration(place: tuple[str, str], home: str, modules: set[str]) -> str:
    module_name, class_name = place
    modules.add(module_name)
    return f"apply.{class_name}" if module_name == home else f"{module_name}_apply.{class_name}"


def _configuration_lines(package: str, home: str, modules: set[str]) -> list[str]:
    """The imports of apply configurations; named in quotes alone, so imported under their own name expressly."""
    return [
        f"from {package}.{name} import apply as {'apply' if name == home else f'{name}_apply'}"
        for name in sorted(modules)
    ]


def _methods(resource: Resource, home: str, layout: Layout, imports: set[str]) -> Iterator[Method]:
    for sub in resource.subresources:
        if sub.name in UPGRADED or sub.name in MIXED_IN:
            continue
        attribute = names.attribute_name(sub.name)
        literal = string_literal(sub.name)
        place = _kind_place(sub, layout)
        if place is None:
            continue
        model = _model(place, home, imports)
        forms = (("get", "read", "get"), ("update", "replace", "replace"), ("patch", "patch", "patch"))
        for verb, form, prefix in forms:
            if verb in sub.verbs and place == layout.place[resource.definition]:
                yield Method(form, f"{prefix}_{attribute}", sub.name, literal, model, resource.namespaced)
        if "create" in sub.verbs:
            yield Method(
                "create",
                f"create_{attribute}",
                sub.name,
                literal,
                model,
                resource.namespaced,
                sub.kind not in ANSWERED_BY_STATUS,
            )


def _kind_place(sub: Subresource, layout: Layout) -> tuple[str, str] | None:
    wanted = (sub.group, sub.version, sub.kind)
    for plan in layout.modules:
        for entry in plan.classes:
            if entry.kind == wanted:
                return plan.name, entry.name
    return None


def _model(place: tuple[str, str], home: str, imports: set[str]) -> str:
    module_name, class_name = place
    if module_name == home:
        return f"models.{class_name}"
    imports.add(module_name)
    return f"{module_name}.{class_name}"
