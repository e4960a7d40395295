"""Typed clients of ordinary OpenAPI documents: ``client.py`` and ``async_client.py`` of the package, and
``operations/<tag>.py`` with a class for each tag, plain and awaited, whose methods are its operations.

A method takes the path parameters first, then the body, then by name what is in query, headers and cookies; it gives
the body of a successful answer. What does the work is in ``apimachinery.openapi``. Where a package serves resources of
a Kubernetes-style API, its clients are those (``emit.client``), and there are none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubewright.emit.code import names
from kubewright.emit.code.class_plans import ModulePlan
from kubewright.emit.code.layout import Outside
from kubewright.emit.code.render import (
    CallText,
    docstring,
    expression,
    header,
    module,
    render,
    string_literal,
)
from kubewright.emit.interface import Options
from kubewright.emit.python.code.modes import MODES, Mode
from kubewright.emit.python.code.operation_methods import Methods
from kubewright.emit.python.code.operation_names import (
    CLIENT_NAMES,
    OperationGroup,
    argument_names,
    groups_of,
    method_name,
    one_line,
)
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.operations import Interface


def emitter(options: Options) -> Emitter:
    """The emitter of ``client.py`` and ``operations/``; nothing where the models are of another flavour."""
    return Operations(options)


def readme_example(interface: Interface) -> dict[str, str]:
    """A call for people to begin with: one that reads, with as few arguments as there are."""
    calls = []
    for group in groups_of(interface):
        used = {"_client"}
        for operation in group.operations:
            method = method_name(operation, used)
            needed = [p for p in operation.parameters if p.required]
            calls.append(
                (operation.method != "GET", operation.needs_body, len(needed), group, method, operation)
            )
    *_, group, method, operation = min(calls, key=lambda call: call[:3])
    arguments = argument_names(operation)
    given = [
        f"{'' if p.place == 'path' else arguments[p.place, p.name] + '='}..."
        for p in operation.parameters
        if p.required
    ]
    return {
        "attribute": group.attribute,
        "method": method,
        "arguments": ", ".join(given),
        "server": "" if "://" in interface.server else '"https://api.example.com"',
    }


@dataclass(frozen=True, slots=True)
class Operations:
    """The clients of a package's ordinary operations."""

    options: Options
    name: str = "operations"

    def emit(self, api: Api) -> Iterable[File]:
        """The package's clients, and a module for each tag."""
        interface = api.interface
        if self.options.models != "msgspec" or api.resources or interface is None:
            return
        first_line = header(self.options.origins)
        groups = groups_of(interface)
        title = " ".join(interface.title.split()) or "this API"
        outside = Outside(api)
        yield File(
            "operations/__init__.py", f"{first_line}{docstring(f'The operations of {title}, by tag.')}\n"
        )
        for group in groups:
            yield File(f"operations/{group.module}.py", self._group(group, outside, first_line))
        for mode in MODES:
            yield File(f"{mode.stem}.py", self._client(mode, interface, title, groups, first_line))

    def _client(
        self, mode: Mode, interface: Interface, title: str, groups: list[OperationGroup], first_line: str
    ) -> str:
        arguments = names.attribute_names((s.name for s in interface.schemes), CLIENT_NAMES)
        table = {
            scheme.name: CallText(
                "SecurityScheme",
                tuple(
                    ("", part)
                    for part in (scheme.place, scheme.key, scheme.prefix)
                    if part or part == scheme.key
                ),
            )
            for scheme in interface.schemes
        }
        return module(
            render(
                "operations_client",
                header=first_line,
                docstring=docstring(f"The client of {title}{_comma(mode)}."),
                package=self.options.package,
                mode={
                    "prefix": mode.prefix,
                    "docstring": docstring(_client_doc(title, mode, interface, arguments), 4),
                },
                server=string_literal(interface.server) if "://" in interface.server else "",
                schemes=[
                    {
                        "argument": arguments[scheme.name],
                        "literal": string_literal(scheme.name),
                        "type": "tuple[str, str]" if scheme.is_pair else "Token",
                    }
                    for scheme in interface.schemes
                ],
                has_token=any(not scheme.is_pair for scheme in interface.schemes),
                scheme_table=f"SCHEMES = {expression(table, taken=10)}",
                groups=[
                    {
                        "module": group.module,
                        "attribute": group.attribute,
                        "class": group.class_name,
                        "docstring": docstring(f"Operations tagged {one_line(group.tag)}.", 8),
                    }
                    for group in groups
                ],
            )
        )

    def _group(self, group: OperationGroup, outside: Outside, first_line: str) -> str:
        plan = ModulePlan(group="", version="", name="")
        writer = Methods(outside, plan, self.options.documentation)
        methods = [writer.method(operation) for operation in group.operations]
        text = "\n".join(
            [
                *writer.constants,
                *writer.aliases,
                *(
                    line
                    for m in methods
                    for line in (*m.arguments, m.answer, *(each.part for each in m.iterators))
                ),
            ]
        )
        words = set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", re.sub(r'"[^"\n]*"', '""', text)))
        typing = {"Any": "Any" in words, "Literal": "Literal" in words, "TypeAlias": bool(writer.aliases)}
        runtime = ("LEFT_OUT", "Body", "Left", "Operation", "Paging", "Parameter")
        imports = [(self.options.package, name, name) for name in plan.imports]
        imports += [(package, home, name) for name, (package, home) in plan.foreign.items()]
        return module(
            render(
                "operations",
                header=first_line,
                docstring=docstring(f"Operations tagged {one_line(group.tag)}."),
                uses={
                    "datetime": "datetime" in words,
                    "events": "ServerSentEvent" in words,
                    "unions": "Untagged" in words,
                    "open": "Open" in words,
                    "iterators": any(method.iterators for method in methods),
                    "typing": [name for name, used in typing.items() if used],
                },
                runtime=[name for name in runtime if name in words],
                imports=[
                    f"from {package}.{home} import models as {name}"
                    for package, home, name in sorted(imports)
                ],
                aliases=writer.aliases,
                constants=writer.constants,
                modes=[
                    {
                        "prefix": mode.prefix,
                        "docstring": docstring(f"Operations tagged {one_line(group.tag)}{_comma(mode)}.", 4),
                        "definition": mode.definition,
                        "call": mode.call,
                    }
                    for mode in MODES
                ],
                methods=methods,
                **{"class": group.class_name},
            )
        )


def _client_doc(title: str, mode: Mode, interface: Interface, arguments: Mapping[str, str]) -> str:
    text = f"All operations of {title} by tag{_comma(mode)}. ``timeout`` is in seconds."
    if not interface.schemes:
        return text
    described = []
    for scheme in interface.schemes:
        what = "user and password" if scheme.is_pair else "a token or key, or a function that gives it"
        described.append(f"    {arguments[scheme.name]}: {what}")
    return "\n".join([text, "", "Credentials:", *described])


def _comma(mode: Mode) -> str:
    return f", {mode.text}" if mode.prefix else ""
