"""Methods of clients of ordinary APIs: an operation's signature, docstring and table, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubewright.emit.code import names
from kubewright.emit.code.class_plans import ModulePlan
from kubewright.emit.code.layout import Outside
from kubewright.emit.code.render import (
    LINE_LENGTH,
    CallText,
    Raw,
    docstring,
    expression,
    statement,
    string_literal,
)
from kubewright.emit.python.code.annotations import annotation
from kubewright.emit.python.code.operation_names import (
    Arguments,
    argument_names,
    free_name,
    method_name,
    one_line,
)
from kubewright.ir.operations import EVENTS, LINES, Content, Listing, Operation, Parameter
from kubewright.ir.types import Scalar, Value

_LONG = 76


@dataclass(frozen=True, slots=True)
class IteratorMethod:
    """A second method of an operation, an iterator of ``part``: it hands over to the client's ``call``."""

    name: str
    call: str
    part: str
    summary: str


@dataclass(frozen=True, slots=True)
class OperationMethod:
    """One method as text: the lines of its arguments, what it gives, and what it passes on."""

    name: str
    constant: str
    arguments: list[str]
    answer: str
    docstring: str
    passed: list[str]
    iterators: list[IteratorMethod] = field(default_factory=list)


@dataclass(slots=True)
class Methods:
    """Writes the methods of one tag."""

    outside: Outside
    plan: ModulePlan
    documented: bool
    constants: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=lambda: {"_client"})

    def method(self, operation: Operation) -> OperationMethod:
        """The method of one operation; ``constants`` and ``aliases`` get what it refers to."""
        name = method_name(operation, self.used)
        arguments = argument_names(operation)
        answer = self._answer(operation, name)
        constant = f"_{name.strip('_').upper()}"
        item = self._item(operation, name)
        self.constants.append(self._constant(operation, constant, answer, has_items=bool(item)))
        lines, passed = self._arguments(operation, name, arguments)
        return OperationMethod(
            name=name,
            constant=constant,
            arguments=lines,
            answer=answer,
            docstring=docstring(self._doc(operation, arguments), 8),
            passed=passed,
            iterators=list(self._iterators(operation, name, item or answer, bool(item))),
        )

    def _iterators(
        self, operation: Operation, name: str, part: str, has_items: bool
    ) -> Iterator[IteratorMethod]:
        plain = name.strip("_")
        if parts := self._parts_of_stream(operation, name):
            called = free_name(f"stream_{plain}", self.used)
            yield IteratorMethod(
                called, "stream", parts, f"As ``{name}``, the answer part by part as it arrives."
            )
        if operation.pages is not None and not operation.bodies:
            what = "the items of all pages" if has_items else "all pages"
            called = free_name(f"iterate_{plain}", self.used)
            summary = (
                f"As ``{name}``, {what}, one after the other; the next page is asked for when it is needed."
            )
            yield IteratorMethod(called, "iterate", part, summary)

    def _item(self, operation: Operation, method: str) -> str:
        """The type of an item of a listing; empty where it is not plain."""
        contents = [
            content
            for answer in operation.answers
            for content in (answer.contents if answer.status[0] == "2" else ())
            if content.value is not None
        ]
        field_name = operation.pages.items if operation.pages else None
        if field_name is None or len(contents) != 1:
            return ""
        value = contents[0].value
        assert value is not None
        found = self.outside.items_of(value, field_name, self.plan)
        return "" if found is None else self._short(annotation(found), f"{method}_item")

    def _parts_of_stream(self, operation: Operation, method: str) -> str:
        """The type of the parts of an answer that goes on; empty where none does."""
        kinds = []
        for answer in operation.answers:
            for content in answer.contents if answer.status[0] == "2" else ():
                if content.plain_type == EVENTS:
                    kinds.append("ServerSentEvent")
                elif content.plain_type in LINES:
                    kinds.append(self._content(content, method, "part"))
        return self._short(_union(kinds), f"{method}_part") if kinds else ""

    def _annotation(self, value: Value, method: str, word: str) -> str:
        text = annotation(self.outside.type_of(value, self.plan))
        return self._short(text, f"{method}_{word}")

    def _short(self, text: str, word: str) -> str:
        """``text``, or a name for it where it is long."""
        if len(text) <= _LONG:
            return text
        name = free_name(names.class_name("".join(part.title() for part in word.split("_"))), self.used)
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
        media_type = content.plain_type
        if media_type.endswith("+json") or media_type in ("application/json", "text/json", *LINES):
            return "Any"
        return "str" if media_type.startswith("text/") else "bytes"

    def _answer(self, operation: Operation, method: str) -> str:
        """What a call gives: the union over all successes."""
        good = [answer for answer in operation.answers if answer.status[0] == "2"]
        good = good or [answer for answer in operation.answers if answer.status == "default"]
        kinds: list[str] = []
        for answer in good:
            kinds += [self._whole(content, method) for content in answer.contents] or ["None"]
        if operation.method == "HEAD":
            return "None"
        return self._short(_union(kinds), f"{method}_answer") if good else "Any"

    def _whole(self, content: Content, method: str) -> str:
        """The type of a body that is read whole."""
        text = self._content(content, method, "answer")
        return f"list[{text}]" if content.plain_type in LINES else text

    def _constant(self, operation: Operation, constant: str, answer: str, *, has_items: bool) -> str:
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
        if operation.pages is not None and not operation.bodies:
            said.append(("pages", _pages_of(operation.pages, has_items)))
        head = f"{constant}: Operation[{answer}] = "
        text = head + expression(CallText("Operation", tuple(said)), taken=len(head))
        # Its first line alone goes to black: found by ``module``, it would take the whole module there.
        return text if len(text.partition("\n")[0]) <= LINE_LENGTH else statement(text)

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


def _parameter(parameter: Parameter) -> CallText:
    said: list[tuple[str, object]] = [("", parameter.name), ("", parameter.place)]
    if parameter.style:
        said.append(("style", parameter.style))
    if parameter.explode and not isinstance(parameter.value.type, Scalar):
        said.append(("explode", True))
    if parameter.media_type:
        said.append(("media_type", parameter.media_type))
    return CallText("Parameter", tuple(said))


def _pages_of(pages: Listing, has_items: bool) -> CallText:
    said: list[tuple[str, object]] = [("link_header", True)] if pages.link_header else []
    said += [(name, text) for name, text in (("url", pages.url), ("more", pages.more)) if text]
    if pages.cursors:
        said.append(("cursors", dict(pages.cursors)))
    if has_items:
        said.append(("items", pages.items))
    return CallText("Paging", tuple(said))


def _body_of(content: Content) -> CallText:
    styles: list[tuple[str, object]] = [("styles", dict(content.styles))] if content.styles else []
    return CallText("Body", (("", content.media_type), *styles))


def _alternatives(operation: Operation) -> str:
    return ", or ".join(" and ".join(map(one_line, alternative)) for alternative in operation.security)


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
