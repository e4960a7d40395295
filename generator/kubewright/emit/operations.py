"""Typed clients of ordinary OpenAPI documents: ``client.py`` and ``async_client.py`` of the package, and
``operations/<tag>.py`` with a class for each tag, plain and awaited, whose methods are its operations.

A method takes the path parameters first, then the body, then by name what is in query, headers and cookies; it gives
the body of a successful answer. What does the work is in ``apimachinery.openapi``. Where a package serves resources of
a Kubernetes-style API, its clients are those (``emit.client``), and there are none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kubewright.emit.code import names
from kubewright.emit.code.layout import ModulePlan, Outside
from kubewright.emit.code.render import (
    Call,
    Raw,
    docstring,
    expression,
    header,
    module,
    render,
    statement,
    string_literal,
)
from kubewright.emit.registry import Options
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.operations import Content, Interface, Operation, Parameter
from kubewright.ir.types import Scalar, Value

_LONG = 76
_TAKEN = frozenset({"call", "close", "server", "timeout", "certificate_authority", "client"})
"""Names that clients have already."""
_TAKEN_ARGUMENTS = frozenset({"self", "body", "content_type", "str", "list", "dict", "int", "float", "bytes"})


def emitter(options: Options) -> Emitter:
    """The emitter of ``client.py`` and ``operations/``; nothing where the models are of another flavour."""
    return Operations(options)


@dataclass(frozen=True, slots=True)
class Mode:
    """Plain or awaited: what differs in names and words."""

    prefix: str
    stem: str
    definition: str
    call: str
    text: str


Arguments: TypeAlias = Mapping[tuple[str, str], str]
"""Place and name of a parameter → what it is called in Python."""
MODES = (
    Mode("", "client", "def", "", ""),
    Mode("Async", "async_client", "async def", "await ", ", awaited"),
)


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one tag: their module, their class, and the attribute of the client."""

    tag: str
    module: str
    class_name: str
    attribute: str
    operations: list[Operation] = field(default_factory=list)


def readme_example(interface: Interface) -> dict[str, str]:
    """A call for people to begin with: one that reads, with as few arguments as there are."""
    calls = []
    for group in _groups(interface):
        used = {"_client"}
        for operation in group.operations:
            method = _free(names.attribute_name(_without_tag(operation.name, operation.tag)), used)
            needed = [p for p in operation.parameters if p.required]
            calls.append(
                (operation.method != "GET", operation.needs_body, len(needed), group, method, operation)
            )
    *_, group, method, operation = min(calls, key=lambda call: call[:3])
    arguments = _argument_names(operation)
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
        groups = _groups(interface)
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
        self, mode: Mode, interface: Interface, title: str, groups: list[Group], first_line: str
    ) -> str:
        arguments = names.attribute_names((s.name for s in interface.schemes), _TAKEN)
        table = {
            scheme.name: Call(
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
                docstring=docstring(f"The client of {title}{mode.text}."),
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
                        "docstring": docstring(f"Operations tagged {_plain(group.tag)}.", 8),
                    }
                    for group in groups
                ],
            )
        )

    def _group(self, group: Group, outside: Outside, first_line: str) -> str:
        plan = ModulePlan(group="", version="", name="")
        writer = _Writer(group, outside, plan, self.options.documentation)
        methods = [writer.method(operation) for operation in group.operations]
        text = "\n".join(
            [
                *writer.constants,
                *writer.aliases,
                *(line for m in methods for line in (*m.arguments, m.answer)),
            ]
        )
        words = set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", re.sub(r'"[^"\n]*"', '""', text)))
        typing = {"Any": "Any" in words, "Literal": "Literal" in words, "TypeAlias": bool(writer.aliases)}
        runtime = ("LEFT_OUT", "Body", "Left", "Operation", "Parameter")
        imports = [(self.options.package, name, name) for name in plan.imports]
        imports += [(package, home, name) for name, (package, home) in plan.foreign.items()]
        return module(
            render(
                "operations",
                header=first_line,
                docstring=docstring(f"Operations tagged {_plain(group.tag)}."),
                uses={
                    "datetime": "datetime" in words,
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
                        "docstring": docstring(f"Operations tagged {_plain(group.tag)}{mode.text}.", 4),
                        "definition": mode.definition,
                        "call": mode.call,
                    }
                    for mode in MODES
                ],
                methods=methods,
                **{"class": group.class_name},
            )
        )


@dataclass(frozen=True, slots=True)
class Method:
    """One method as text: the lines of its arguments, what it gives, and what it passes on."""

    name: str
    constant: str
    arguments: list[str]
    answer: str
    docstring: str
    passed: list[str]


@dataclass(slots=True)
class _Writer:
    """Writes the methods of one tag."""

    group: Group
    outside: Outside
    plan: ModulePlan
    documented: bool
    constants: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=lambda: {"_client"})

    def method(self, operation: Operation) -> Method:
        name = _free(names.attribute_name(_without_tag(operation.name, operation.tag)), self.used)
        arguments = _argument_names(operation)
        answer = self._answer(operation, name)
        constant = f"_{name.strip('_').upper()}"
        self.constants.append(self._constant(operation, constant, answer))
        lines, passed = self._arguments(operation, name, arguments)
        return Method(
            name=name,
            constant=constant,
            arguments=lines,
            answer=answer,
            docstring=docstring(self._doc(operation, arguments), 8),
            passed=passed,
        )

    def _annotation(self, value: Value, method: str, word: str) -> str:
        text = self.outside.annotate(value, self.plan)
        return self._short(text, f"{method}_{word}")

    def _short(self, text: str, word: str) -> str:
        """``text``, or a name for it where it is long."""
        if len(text) <= _LONG:
            return text
        name = _free(names.class_name("".join(part.title() for part in word.split("_"))), self.used)
        self.aliases.append(statement(f"{name}: TypeAlias = {text}"))
        return name

    def _arguments(
        self, operation: Operation, method: str, arguments: Arguments
    ) -> tuple[list[str], list[str]]:
        first, needed, others = [], [], []
        for parameter in operation.parameters:
            name = arguments[parameter.place, parameter.name]
            text = self._annotation(parameter.value, method, name)
            if parameter.place == "path":
                first.append(f"{name}: {text},")
            elif parameter.required:
                needed.append(f"{name}: {text},")
            else:
                others.append(f"{name}: {_or_none(text)} = None,")
        passed = [arguments[parameter.place, parameter.name] for parameter in operation.parameters]
        if operation.bodies:
            text = self._short(self._body(operation, method), f"{method}_body")
            passed.append("body=body")
            if operation.needs_body:
                first.append(f"body: {text},")
            else:
                others.insert(0, f"body: {text + ' | Left' if text != 'Any' else text} = LEFT_OUT,")
            if len(operation.bodies) > 1 or "*" in operation.bodies[0].media_type:
                passed.append("content_type=content_type")
                others.append(f"content_type: {self._content_type(operation, method)},")
        by_name = [*needed, *others]
        return [*first, *(["*,"] if by_name else []), *by_name], passed

    def _content_type(self, operation: Operation, method: str) -> str:
        given = [body.media_type for body in operation.bodies]
        if any("*" in media_type for media_type in given):
            return 'str = ""'
        listed = ", ".join(map(string_literal, given))
        return f"{self._short(f'Literal[{listed}]', f'{method}_content_type')} = {string_literal(given[0])}"

    def _body(self, operation: Operation, method: str) -> str:
        return _union(self._content(content, method, "body") for content in operation.bodies)

    def _content(self, content: Content, method: str, word: str) -> str:
        if content.value is not None:
            return self._annotation(content.value, method, word)
        media_type = content.media_type.partition(";")[0].strip().lower()
        if media_type.endswith("+json") or media_type in ("application/json", "text/json"):
            return "Any"
        return "str" if media_type.startswith("text/") else "bytes"

    def _answer(self, operation: Operation, method: str) -> str:
        """What a call gives: the union over all successes."""
        good = [answer for answer in operation.answers if answer.status[0] == "2"]
        good = good or [answer for answer in operation.answers if answer.status == "default"]
        kinds: list[str] = []
        for answer in good:
            kinds += [self._content(content, method, "answer") for content in answer.contents] or ["None"]
        if operation.method == "HEAD":
            return "None"
        return self._short(_union(kinds), f"{method}_answer") if good else "Any"

    def _constant(self, operation: Operation, constant: str, answer: str) -> str:
        said: list[tuple[str, object]] = [
            ("name", operation.name),
            ("method", operation.method),
            ("path", operation.path),
        ]
        if operation.parameters:
            said.append(("parameters", tuple(map(_parameter, operation.parameters))))
        if operation.bodies:
            said.append(("bodies", tuple(map(_body_of, operation.bodies))))
        answers = {
            answer.status: {
                content.media_type: Raw(self._content(content, operation.name, "answer"))
                for content in answer.contents
            }
            for answer in operation.answers
        }
        if answers:
            said.append(("answers", answers))
        if operation.security:
            said.append(("security", operation.security))
        if operation.server:
            said.append(("server", operation.server))
        head = f"{constant}: Operation[{answer}] = "
        return head + expression(Call("Operation", tuple(said)), taken=len(head))

    def _doc(self, operation: Operation, arguments: Arguments) -> str:
        text = operation.doc if self.documented else ""
        parts = [text or f"{operation.method} {operation.path}."]
        if operation.deprecated:
            parts.append("Deprecated.")
        if self.documented:
            described = [
                f"    {arguments[p.place, p.name]}: {' '.join(p.doc.split())}"
                for p in operation.parameters
                if p.doc.strip()
            ]
            if described:
                parts.append("\n".join(["Parameters:", *described]))
        if operation.security:
            parts.append(f"Needs {_alternatives(operation)}.")
        return "\n\n".join(parts)


def _parameter(parameter: Parameter) -> Call:
    said: list[tuple[str, object]] = [("", parameter.name), ("", parameter.place)]
    if parameter.style:
        said.append(("style", parameter.style))
    if parameter.explode and not isinstance(parameter.value.type, Scalar):
        said.append(("explode", True))
    if parameter.media_type:
        said.append(("media_type", parameter.media_type))
    return Call("Parameter", tuple(said))


def _body_of(content: Content) -> Call:
    styles: list[tuple[str, object]] = [("styles", dict(content.styles))] if content.styles else []
    return Call("Body", (("", content.media_type), *styles))


def _alternatives(operation: Operation) -> str:
    return ", or ".join(" and ".join(map(_plain, alternative)) for alternative in operation.security)


def _or_none(text: str) -> str:
    return text if text == "Any" or text.endswith("| None") else f"{text} | None"


def _union(kinds: Iterable[str]) -> str:
    """The union of some annotations, ``None`` last; ``Any`` takes in all."""
    parts = dict.fromkeys(part for kind in kinds for part in _parts(kind))
    if "Any" in parts:
        return "Any"
    has_none = parts.pop("None", "") is None
    return " | ".join([*parts, *(["None"] if has_none else [])]) or "None"


def _parts(kind: str) -> list[str]:
    """The members of a union that is written out."""
    return [kind] if "[" in kind else kind.split(" | ")


def _groups(interface: Interface) -> list[Group]:
    """The operations by tag, tags by name."""
    tags = sorted({operation.tag for operation in interface.operations})
    modules, attributes, classes = set[str](), set(_TAKEN), {"AsyncClient", "Client", *_RUNTIME}
    groups = {}
    for tag in tags:
        word = names.attribute_name(tag)
        class_name = names.class_name(tag)
        while class_name in classes or f"Async{class_name}" in classes:
            class_name += "Operations" if not class_name.endswith("Operations") else "2"
        classes |= {class_name, f"Async{class_name}"}
        groups[tag] = Group(tag, _free(word, modules), class_name, _free(word, attributes))
    for operation in sorted(interface.operations, key=lambda each: (each.path, each.method)):
        groups[operation.tag].operations.append(operation)
    return list(groups.values())


_RUNTIME = frozenset({"Operation", "Parameter", "Body", "Left", "Any", "Literal", "TypeAlias"})


def _free(name: str, used: set[str]) -> str:
    """``name``, or with a number, as nothing else is called; it is taken from then on."""
    plain, count = name, 2
    while name in used:
        name = f"{plain}_{count}"
        count += 1
    used.add(name)
    return name


def _without_tag(name: str, tag: str) -> str:
    """``repos/list`` of the tag ``repos`` is ``list``."""
    head, rest = name[: len(tag)], name[len(tag) :]
    return rest[1:] if head.lower() == tag.lower() and rest[:1] in tuple("/._-") and len(rest) > 1 else name


def _argument_names(operation: Operation) -> Arguments:
    """The argument of each parameter; where two have one name, the place comes after it."""
    used = set(_TAKEN_ARGUMENTS)
    found = {}
    for parameter in operation.parameters:
        name = names.attribute_name(parameter.name)
        if name in used:
            name = f"{name}_{parameter.place}"
        found[parameter.place, parameter.name] = _free(name, used)
    return found


def _client_doc(title: str, mode: Mode, interface: Interface, arguments: Mapping[str, str]) -> str:
    text = f"All operations of {title} by tag{mode.text}. ``timeout`` is in seconds."
    if not interface.schemes:
        return text
    described = []
    for scheme in interface.schemes:
        what = "user and password" if scheme.is_pair else "a token or key, or a function that gives it"
        described.append(f"    {arguments[scheme.name]}: {what}")
    return "\n".join([text, "", "Credentials:", *described])


def _plain(text: str) -> str:
    """A name of a document in a docstring."""
    return " ".join(text.split())
