"""OpenAPI documents of several files, as one: what references to other files lead to is brought in.

A schema, response, parameter, header or request body of another file becomes a component, called as there (by the last
part of the pointer, or by its file); anything else (a path, an operation, a description) stands where it is named.
Files are named by paths relative to the file that names them, end in .yaml, .yml or .json, and are read once. Nothing
is fetched: an address is a diagnostic. Examples and extensions that name other files are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from kubewright.diagnostics import Diagnostics
from kubewright.ir.types import Json
from kubewright.location import Document, Location, escape_pointer, unescape_pointer
from kubewright.source import text
from kubewright.source.yaml_text import MAX_COPIED_NODES

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_GRAMMAR: dict[str, dict[str, str]] = {
    "document": {
        "paths": "paths",
        "components": "components",
        "definitions": "schemas",
        "parameters": "parameters",
        "responses": "responses",
    },
    "components": {
        "schemas": "schemas",
        "responses": "responses",
        "parameters": "parameters",
        "headers": "headers",
        "requestBodies": "requestBodies",
    },
    "paths": {"*": "path"},
    "path": {"parameters": "parameters", **dict.fromkeys(_METHODS, "operation")},
    "operation": {
        "parameters": "parameters",
        "requestBody": "requestBody",
        "responses": "responses",
        "callbacks": "callbacks",
    },
    "callbacks": {"*": "paths"},
    "parameters": {"*": "parameter"},
    "parameter": {"schema": "schema", "content": "content"},
    "requestBodies": {"*": "requestBody"},
    "requestBody": {"content": "content"},
    "responses": {"*": "response"},
    "response": {"content": "content", "headers": "headers", "schema": "schema"},
    "headers": {"*": "header"},
    "header": {"schema": "schema"},
    "content": {"*": "media"},
    "media": {"schema": "schema"},
    "schemas": {"*": "schema"},
    "schema": {
        **dict.fromkeys(("properties", "patternProperties", "allOf", "oneOf", "anyOf", "$defs"), "schemas"),
        **dict.fromkeys(("items", "additionalProperties", "not"), "schema"),
        "discriminator": "discriminator",
        **dict.fromkeys(("default", "enum", "const", "example", "examples"), "value"),
    },
    "discriminator": {"mapping": "mapping"},
    "value": {"*": "value"},
}
"""What is at a key of what; ``*``: at any other key, or in a list."""
_NAMING = {mode for mode, members in _GRAMMAR.items() if "*" in members} - {"paths", "responses", "callbacks"}
"""Where keys are names that authors choose: a property may be called ``links``, a header ``x-limit``."""
_SECTIONS = {
    "schema": "schemas",
    "response": "responses",
    "parameter": "parameters",
    "header": "headers",
    "requestBody": "requestBodies",
}
_SECTIONS_V2 = {"schema": "definitions", "response": "responses", "parameter": "parameters"}
_FILE = re.compile(r"""\$ref["']?\s*:\s*["']?([^#"'\s]+\.(?:ya?ml|json))""")
_MAPPED = re.compile(r"^[^:#]*\.(?:ya?ml|json)(?:#.*)?$")
_Target = tuple[Path, str]


def has_other_files(value: Json) -> bool:
    """Whether a reference in a document leads out of it."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            target = node.get("$ref")
            if isinstance(target, str) and not target.startswith("#"):
                return True
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return False


def other_files(path: Path) -> Iterator[Path]:
    """The files that the document at ``path`` names, and those that these name."""
    seen, pending = {path.resolve()}, [path]
    while pending:
        current = pending.pop()
        try:
            content = text.read_bytes(current).decode("utf-8", "replace")
        except OSError:
            continue
        for name in sorted(set(_FILE.findall(content))):
            found = (current.parent / unquote(name)).resolve()
            if "://" not in name and found not in seen and found.is_file():
                seen.add(found)
                pending.append(found)
                yield found


def bundle(document: Document, diagnostics: Diagnostics) -> Document:
    """``document`` with what it names in other files; it knows of each place in which file it is."""
    return _Bundler(document, diagnostics).run()


@dataclass(slots=True)
class BundledDocument(Document):
    """A document of several files. ``origins``: pointer → the document and pointer of what is there and below."""

    origins: dict[str, tuple[Document, str]] = field(default_factory=dict)

    def at(self, pointer: str) -> Location:
        """The place of ``pointer`` in the file that it came from."""
        outer = pointer
        while outer not in self.origins:
            outer = outer.rpartition("/")[0]
        document, inner = self.origins[outer]
        return document.at(inner + pointer[len(outer) :])


@dataclass(slots=True)
class _Place:
    """Where a value is: in which file, and where there."""

    path: Path
    pointer: str

    def below(self, key: str) -> _Place:
        return _Place(self.path, f"{self.pointer}/{escape_pointer(key)}")


class _Bundler:
    def __init__(self, document: Document, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._root = Path(document.file).resolve()
        self._files: dict[Path, Document | None] = {self._root: document}
        self._named: dict[tuple[str, _Target], str] = {}
        self._pending: list[tuple[str, str, str, _Target]] = []
        self._result = BundledDocument(document.file, {}, origins={"": (document, "")})
        is_v2 = "swagger" in document.value
        self._sections = _SECTIONS_V2 if is_v2 else _SECTIONS
        self._home = "" if is_v2 else "/components"
        self._copied = 0

    def run(self) -> Document:
        source = self._files[self._root]
        assert source is not None
        for mode, section in self._sections.items():
            self._name_own(mode, section, source.value)
        value = self._walk(source.value, _Place(self._root, ""), "document", "", ())
        home = value.setdefault("components", {}) if self._home else value
        while self._pending:
            mode, name, pointer, (path, inner) = self._pending.pop(0)
            found = self._found(path, inner)
            self._mark(pointer, _Place(path, inner))
            content = self._walk(found, _Place(path, inner), mode, pointer, ())
            home.setdefault(self._sections[mode], {})[name] = content
        self._result.value = value
        return self._result

    def _name_own(self, mode: str, section: str, value: Json) -> None:
        """Components that are nothing but a reference to a file give their name to what is there."""
        parts = value.get("components") if self._home else value
        members = parts.get(section) if isinstance(parts, dict) else None
        for name, member in members.items() if isinstance(members, dict) else ():
            target = member.get("$ref") if isinstance(member, dict) else None
            if isinstance(target, str) and not target.startswith("#"):
                place = self._target(target, _Place(self._root, ""))
                if place is not None and (mode, place) not in self._named:
                    self._named[mode, place] = str(name)

    def _walk(self, value: Json, at: _Place, mode: str, pointer: str, inside: tuple[_Target, ...]) -> Json:
        """``value`` without references to other files. ``pointer`` is where it will be."""
        if mode == "mapping" and isinstance(value, dict):
            return {key: self._mapped(item, at) for key, item in value.items()}
        if mode == "value":
            return value
        grammar = _GRAMMAR.get(mode, {})
        if isinstance(value, list):
            inner = grammar.get("*", "")
            return [
                self._walk(item, at.below(str(index)), inner, f"{pointer}/{index}", inside)
                for index, item in enumerate(value)
            ]
        if not isinstance(value, dict):
            return value
        target = value.get("$ref")
        if isinstance(target, str) and (at.path != self._root or not target.startswith("#")):
            return self._referred(target, value, at, mode, pointer, inside)
        return {
            key: self._walk(
                item,
                at.below(str(key)),
                grammar.get(str(key), grammar.get("*", "")),
                f"{pointer}/{escape_pointer(str(key))}",
                inside,
            )
            for key, item in value.items()
            if not (_is_aside(str(key), mode) and has_other_files(item))
        }

    def _referred(
        self, target: str, value: Json, at: _Place, mode: str, pointer: str, inside: tuple[_Target, ...]
    ) -> Json:
        place = self._target(target, at)
        if place is None:
            return {}
        if place[0] == self._root and place[1]:
            return {**value, "$ref": f"#{place[1]}"}
        if mode in self._sections and self._pointer_of(mode, place) != pointer:
            return {**value, "$ref": f"#{self._pointer_of(mode, place)}"}
        if place in inside:
            self._fault(f"$ref {target!r} leads back to itself", at)
            return {}
        self._copied += 1
        if self._copied > MAX_COPIED_NODES:
            self._fault("references to other files unfold into too much", at)
            return {}
        self._mark(pointer, _Place(*place))
        return self._walk(self._found(*place), _Place(*place), mode, pointer, (*inside, place))

    def _mapped(self, target: Json, at: _Place) -> Json:
        if isinstance(target, str) and (_MAPPED.match(target) or target.startswith("#")):
            place = self._target(target, at)
            if place is not None:
                return f"#{place[1] if place[0] == self._root else self._pointer_of('schema', place)}"
        return target

    def _pointer_of(self, mode: str, place: _Target) -> str:
        """Where the component is that stands for ``place``; it is brought in if it has not been."""
        section = self._sections[mode]
        start = f"{self._home}/{section}/"
        name = self._named.get((mode, place))
        if name is None:
            name = self._free_name(mode, place)
            self._named[mode, place] = name
            self._pending.append((mode, name, start + escape_pointer(name), place))
        return start + escape_pointer(name)

    def _free_name(self, mode: str, place: _Target) -> str:
        path, pointer = place
        word = unescape_pointer(pointer.rpartition("/")[2]) if pointer else path.stem
        root = self._files[self._root]
        assert root is not None
        parts = root.value.get("components", {}) if self._home else root.value
        own = parts.get(self._sections[mode]) if isinstance(parts, dict) else None
        taken = set(own if isinstance(own, dict) else ())
        taken |= {name for (each, _), name in self._named.items() if each == mode}
        for name in (word, f"{path.stem}_{word}", f"{path.parent.name}_{word}"):
            if name not in taken:
                return name
        return next(name for count in range(2, len(taken) + 3) if (name := f"{word}_{count}") not in taken)

    def _target(self, reference: str, at: _Place) -> _Target | None:
        """The file and pointer of a reference; ``None`` after a diagnostic."""
        name, _, fragment = reference.partition("#")
        if "://" in name or name.startswith("/"):
            self._fault(f"cannot resolve $ref {reference!r}", at, "only files next to the document are read")
            return None
        path = (at.path.parent / unquote(name)).resolve() if name else at.path
        pointer = unquote(fragment).rstrip("/")
        seen: set[_Target] = set()
        while (path, pointer) not in seen:
            seen.add((path, pointer))
            if path not in self._files:
                self._files[path] = self._read(path, reference, at)
            document = self._files[path]
            if document is None:
                return None
            hop = _hop(document.value, pointer)
            if hop is None:
                return path, pointer
            hop_name, _, hop_fragment = hop[0].partition("#")
            path = (path.parent / unquote(hop_name)).resolve() if hop_name else path
            pointer = unquote(hop_fragment).rstrip("/") + hop[1]
        self._fault(f"$ref {reference!r} leads back to itself", at)
        return None

    def _read(self, path: Path, reference: str, at: _Place) -> Document | None:
        shown = Path(self._result.file).parent
        if path.suffix not in text.SUFFIXES or not path.is_file():
            self._fault(f"cannot resolve $ref {reference!r}: there is no file {path.name}", at)
            return None
        name = path.relative_to(self._root.parent) if path.is_relative_to(self._root.parent) else path
        document = text.read_single(path, self._diagnostics, modern=True)
        if document is not None:
            document.file = str(shown / name)
        return document

    def _found(self, path: Path, pointer: str) -> Json:
        document = self._files[path]
        value = document.value if document else None
        for token in pointer.split("/")[1:]:
            value = _step(value, token)
        if value is None:
            self._fault(f"nothing is at {pointer or path.name!r}", _Place(path, ""))
            return {}
        return value

    def _mark(self, pointer: str, place: _Place) -> None:
        document = self._files[place.path]
        if document is not None:
            self._result.origins[pointer] = (document, place.pointer)

    def _fault(self, message: str, at: _Place, hint: str = "") -> None:
        document = self._files[at.path]
        assert document is not None
        self._diagnostics.error("K201", message, document.at(f"{at.pointer}/$ref"), hint)


def _is_aside(key: str, mode: str) -> bool:
    return mode not in _NAMING and (key in ("example", "examples", "links") or key.startswith("x-"))


def _step(value: Json, token: str) -> Json:
    key = unescape_pointer(token)
    if isinstance(value, list):
        return value[int(key)] if key.isdigit() and int(key) < len(value) else None
    if isinstance(value, dict):
        return value.get(key, value.get(int(key)) if key.isdigit() else None)
    return None


def _hop(value: Json, pointer: str) -> tuple[str, str] | None:
    """The reference on the way to ``pointer``, and what is left to go from there; ``None`` where there is none."""
    tokens = pointer.split("/")[1:]
    for index, token in enumerate(tokens):
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            return value["$ref"], "".join(f"/{each}" for each in tokens[index:])
        value = _step(value, token)
    return None
