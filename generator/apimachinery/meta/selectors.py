"""Label and field selectors: parsed once, then asked of every object.

Grammar of label selectors (meta/v1): requirements joined by commas, each ``key``, ``!key``,
``key = value`` (also ``==``, ``!=``), ``key in (a, b)``, ``key notin (a, b)``, ``key > 1``, ``key < 1``. A
negative requirement also holds for objects that lack the label. Field selectors know ``=``, ``==`` and ``!=``
only; a backslash escapes ``\\``, ``,`` and ``=`` in their values.
Faults are ``SelectorError`` in kube-apiserver's words; a server answers them with 400.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apimachinery.meta.names import label_value_faults, qualified_name_faults
from apimachinery.meta.printing import go_quote
from apimachinery.meta.sorting import in_slices

Labels = Mapping[str, str]
FEW = 8
"""So many requirements, terms or values are gone through; of more, those are sought that concern an object."""


class SelectorError(ValueError):
    """A selector that cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """``key`` of a label, one of the operators ``in notin exists ! > <``, and its values, sorted."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether labels meet the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and self._lists(value)
            case "notin":
                return value is None or not self._lists(value)
            case "exists":
                return value is not None
            case "!":
                return value is None
        if value is None or (number := _integer(value)) is None:
            return False
        bound = int(self.values[0])
        return number > bound if self.operator == ">" else number < bound

    def _lists(self, value: str) -> bool:
        values = self.values
        if len(values) <= FEW:
            return value in values
        place = bisect_left(values, value)
        return place < len(values) and values[place] == value


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; none at all select everything. Of many, an object costs what its own labels
    cost, however many there are."""

    requirements: tuple[Requirement, ...] = ()
    _sorted: tuple[dict[str, list[Requirement]], set[str]] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """Of many requirements: those of each key, and the keys without which labels do not match."""

    def __post_init__(self) -> None:
        if len(self.requirements) <= FEW:
            return
        by_key: dict[str, list[Requirement]] = {}
        for requirement in self.requirements:
            by_key.setdefault(requirement.key, []).append(requirement)
        demanded = {each.key for each in self.requirements if each.operator not in ("notin", "!")}
        object.__setattr__(self, "_sorted", (by_key, demanded))

    def matches(self, labels: Labels) -> bool:
        """Whether labels meet all requirements."""
        if self._sorted is None:
            return all(requirement.matches(labels) for requirement in self.requirements)
        by_key, demanded = self._sorted
        if len(demanded) > len(labels) or not all(key in labels for key in demanded):
            return False
        return all(requirement.matches(labels) for key in labels for requirement in by_key.get(key, ()))


EVERYTHING = LabelSelector()
_BINARY = "in, notin, =, ==, !=, gt, lt"
_END = "end"


def parse_label_selector(text: str) -> LabelSelector:
    """Read a label selector. Raises SelectorError."""
    if not text:
        return EVERYTHING
    return LabelSelector(tuple(sorted(_Parser(text).parse(), key=lambda r: r.key)))


# A symbol, or a word up to the next symbol or blank.
_TOKEN = re.compile(r"(==|!=|[=!(),><])|([^=!(),>< \t\r\n]+)")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a token (``word``, ``end`` or the symbol itself) and its text."""
    for symbol, word in _TOKEN.findall(text):
        if symbol:
            yield symbol, symbol
        else:
            yield (word if word in ("in", "notin") else "word"), word
    yield _END, ""


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0

    def parse(self) -> Iterator[Requirement]:
        while True:
            token, literal = self._look()
            if token == _END:
                return
            if token not in ("word", "!"):
                raise SelectorError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except SelectorError as fault:
                raise SelectorError(f"unable to parse requirement: {fault}") from None
            token, literal = self._take()
            if token == _END:
                return
            if token != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            token, literal = self._look()
            if token not in ("word", "!"):
                raise SelectorError(f"found '{literal}', expected: identifier after ','")

    def _look(self, *, operators: bool = False) -> tuple[str, str]:
        token, literal = self._tokens[self._place]
        if not operators and token in ("in", "notin"):
            token = "word"
        return token, literal

    def _take(self, *, operators: bool = False) -> tuple[str, str]:
        found = self._look(operators=operators)
        if self._place < len(self._tokens) - 1:
            self._place += 1
        return found

    def _requirement(self) -> Requirement:
        absent = False
        token, key = self._take()
        if token == "!":
            absent = True
            token, key = self._take()
        if token != "word":
            raise SelectorError(f"found '{key}', expected: identifier")
        if faults := qualified_name_faults(key):
            raise SelectorError(f"<nil>: Invalid value: {go_quote(key)}: {'; '.join(faults)}")
        if absent:
            return Requirement(key, "!")
        if self._look()[0] in (_END, ","):
            return Requirement(key, "exists")
        operator, literal = self._take(operators=True)
        match operator:
            case "in" | "notin":
                return _checked(key, operator, self._values())
            case "=" | "==":
                return _checked(key, "in", self._exact_value())
            case "!=":
                return _checked(key, "notin", self._exact_value())
            case ">" | "<":
                return _checked(key, operator, self._exact_value())
        raise SelectorError(f"found '{literal}', expected: {_BINARY}")

    def _values(self) -> list[str]:
        token, literal = self._take()
        if token != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        token, literal = self._look()
        if token == ")":
            self._take()
            return [""]  # an empty pair of parentheses lists the empty value
        if token not in ("word", ","):
            raise SelectorError(f"found '{literal}', expected: ',', ')' or identifier")
        values = self._listed()
        token, literal = self._take()
        if token != ")":
            raise SelectorError(f"found '{literal}', expected: ')'")
        return values

    def _listed(self) -> list[str]:
        values: list[str] = []
        while True:
            token, literal = self._take()
            if token == "word":
                values.append(literal)
                token, literal = self._look()
                if token == ")":
                    return values
                if token != ",":
                    raise SelectorError(f"found '{literal}', expected: ',' or ')'")
            elif token == ",":
                if not values:
                    values.append("")
                token, _ = self._look()
                if token == ")":
                    return [*values, ""]
                if token == ",":
                    values.append("")
            else:
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")

    def _exact_value(self) -> list[str]:
        if self._look()[0] in (_END, ","):
            return [""]
        token, literal = self._take()
        if token != "word":
            raise SelectorError(f"found '{literal}', expected: identifier")
        return [literal]


def _checked(key: str, operator: str, values: list[str]) -> Requirement:
    values = in_slices(set(values))
    faults: list[str] = []
    if not values:
        faults.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    for index, value in enumerate(values):
        if operator in "><" and _integer(value) is None:
            faults.append(
                f"values[{index}]: Invalid value: {go_quote(value)}: "
                "for 'Gt', 'Lt' operators, the value must be an integer"
            )
        if wrong := label_value_faults(value):
            faults.append(f"values[{index}][{key}]: Invalid value: {go_quote(value)}: {'; '.join(wrong)}")
    if faults:
        raise SelectorError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return Requirement(key, operator, tuple(values))


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of(selector: Mapping[str, Any]) -> LabelSelector:
    """A LabelSelector object (``matchLabels``, ``matchExpressions``), ready to be asked; an empty one selects all.

    Raises SelectorError for an operator that there is not.
    """
    requirements = [
        Requirement(key, "in", (value,)) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        operator = _OPERATORS.get(expression.get("operator") or "")
        if operator is None:
            raise SelectorError(
                f"{go_quote(str(expression.get('operator')))} is not a valid label selector operator"
            )
        values = tuple(sorted(expression.get("values") or ()))
        requirements.append(Requirement(expression.get("key") or "", operator, values))
    return LabelSelector(tuple(requirements))


def _integer(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """``field`` must equal ``value``, or must not."""

    field: str
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms that must all hold. Of many, an object is asked for each field once."""

    terms: tuple[FieldTerm, ...] = ()
    _sorted: dict[str, tuple[set[str], set[str]]] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """Of many terms: by field the values that it must have, and must not have."""

    def __post_init__(self) -> None:
        if len(self.terms) <= FEW:
            return
        by_field: dict[str, tuple[set[str], set[str]]] = {}
        for term in self.terms:
            by_field.setdefault(term.field, (set(), set()))[term.negated].add(term.value)
        object.__setattr__(self, "_sorted", by_field)

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Whether an object, asked by ``value_of`` for a field's text, meets all terms."""
        if self._sorted is None:
            return all((value_of(term.field) == term.value) != term.negated for term in self.terms)
        for name, (wanted, unwanted) in self._sorted.items():
            value = value_of(name)
            if value in unwanted or (wanted and wanted != {value}):
                return False
        return True

    def exact(self, field: str) -> str | None:
        """The value that the terms demand of a field; None where they leave it open."""
        for term in self.terms:
            if term.field == field and not term.negated:
                return term.value
        return None


def parse_field_selector(text: str) -> FieldSelector:
    """Read a field selector. Raises SelectorError."""
    terms: list[FieldTerm] = []
    for part in _split(text):
        if not part:
            continue
        operator = _OPERATOR.search(part)
        if operator is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _unescape(part[operator.end() :])
        terms.append(FieldTerm(part[: operator.start()], value, operator[0] == "!="))
    return FieldSelector(tuple(sorted(terms, key=lambda term: (term.field, term.value, term.negated))))


_ESCAPED_OR_COMMA = re.compile(r"\\.|,", re.DOTALL)
_OPERATOR = re.compile(r"!=|==?")


def _split(text: str) -> Iterator[str]:
    """The terms between commas that no backslash escapes."""
    start = 0
    for match in _ESCAPED_OR_COMMA.finditer(text):
        if match[0] == ",":
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _unescape(text: str) -> str:
    if not any(char in text for char in "\\,="):
        return text
    found: list[str] = []
    escaped = False
    for char in text:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            found.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            found.append(char)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(found)
