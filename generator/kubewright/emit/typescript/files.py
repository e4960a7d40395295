"""``<group_version>.ts``: types, and a constant for each resource that says to the client where objects are and what
they are; ``client.ts``, the client; ``index.ts``, which exports all of it.

Imports name ``.js`` files, as modules of Node, bundlers and browsers want it. Only types cross between modules, so what
is bundled is the client and the few resources that are used.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.class_plans import Layout, ModulePlan
from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.render import template_text
from kubewright.emit.interface import Form, Forms, Made, Options
from kubewright.emit.typescript.text import comment, constant_name, header, literal, one_line, property_name
from kubewright.emit.typescript.types import NAMING, TypeWriter
from kubewright.ir.api import Api, File, Resource
from kubewright.ir.versions import join_api_version

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class TypeScript:
    """The TypeScript emitter."""

    name = "typescript"
    parts = ("types", "client", "index")
    forms = frozenset({Form.NAMED})

    def check(self, api: Api, options: Options, diagnostics: Diagnostics) -> None:
        """Says nothing: every name can be that of a property."""

    def emit(self, forms: Forms, options: Options) -> Iterator[Made]:
        """A file for each group-version, the client where there are resources, and the index."""
        api = forms[Form.NAMED]
        layout = lay_out(api, naming=NAMING)
        served: dict[tuple[str, str], list[Resource]] = {}
        for resource in api.resources:
            if resource.definition in layout.place:
                served.setdefault((resource.group, resource.version), []).append(resource)
        top = header(options.origins)
        modules = [plan for plan in layout.modules if plan.classes or plan.aliases]
        wanted = options.only or self.parts
        if "types" in wanted:
            writer = TypeWriter(options.documentation)
            for plan in modules:
                resources = served.get((plan.group, plan.version), [])
                yield Made("types", File(f"{plan.name}.ts", top + _module(plan, layout, resources, writer)))
        if "client" in wanted and served:
            yield Made("client", File("client.ts", top + template_text("typescript_client")))
        if "index" in wanted:
            lines = [f'export * as {plan.name} from "./{plan.name}.js";' for plan in modules]
            lines += ['export * from "./client.js";'] if served else []
            yield Made("index", File("index.ts", top + "\n" + "\n".join(lines) + "\n"))


def _module(plan: ModulePlan, layout: Layout, resources: list[Resource], writer: TypeWriter) -> str:
    imports = {name for name in plan.imports if name != plan.name}
    constants, taken = [], {"client", *imports}
    for resource in resources:
        home, kind = layout.place[resource.definition]
        imports |= {home} - {plan.name}
        model = kind if home == plan.name else f"{home}.{kind}"
        constants.append(_resource(constant_name(resource.plural, taken), resource, model))
    lines = [f'import type * as {name} from "./{name}.js";' for name in sorted(imports)]
    if constants:
        lines.insert(0, 'import type * as client from "./client.js";')
    blocks = ["\n".join(lines)] if lines else []
    blocks += [text for text in (writer.module(plan),) if text]
    return "\n" + "\n\n".join([*blocks, *constants]) + "\n"


def _resource(name: str, resource: Resource, model: str) -> str:
    """The constant of a resource. Its type says the verbs, so the compiler refuses what the server would."""
    verbs = [verb for verb in _VERBS if verb in resource.verbs]
    subresources = sorted(sub.name for sub in resource.subresources)
    kind = f"client.Resource<{model}>"
    if verbs:
        kind += f" & client.Can<{'client.Verb' if verbs == [*_VERBS] else ' | '.join(map(literal, verbs))}>"
    if subresources:
        kind += f" & client.Has<{' | '.join(map(literal, subresources))}>"
    fields = {
        "group": literal(resource.group),
        "version": literal(resource.version),
        "apiVersion": literal(join_api_version(resource.group, resource.version)),
        "kind": literal(resource.kind),
        "plural": literal(resource.plural),
        "namespaced": literal(resource.namespaced),
        "verbs": _set(verbs),
        "subresources": _set(subresources),
    }
    warning = resource.deprecation_warning.strip() or "a newer version should be used"
    doc = comment("", tags=[f"@deprecated {one_line(warning)}"]) if resource.deprecated else []
    body = "".join(f"  {key}: {text},\n" for key, text in fields.items())
    return "\n".join([*doc, f"export const {name}: {kind} = {{\n{body}}};"])


def _set(words: list[str]) -> str:
    return "{ " + ", ".join(f"{property_name(word)}: true" for word in words) + " }" if words else "{}"
