"""CustomResourceDefinitions out of Python classes: msgspec Structs, dataclasses, pydantic models, and generated models.

``module:Class`` or ``file.py:Class`` names a class, ``module:*`` all of a module that are kinds. The module is
imported, so its code runs. A class becomes a manifest, which is read as any other; each part of it knows the line of
its class or field, so faults are told there. The markers are in ``apimachinery.typed.markers``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from apimachinery.typed import markers
from kubewright.diagnostics import Diagnostics
from kubewright.ir.types import Json
from kubewright.ir.words import plural_of
from kubewright.location import Document, Location, escape_pointer
from kubewright.source.python_fields import ClassField, PythonTypeError, fields_of, is_class, keeps_unknown
from kubewright.source.python_types import TypeSchema, rule_schema

TARGET = re.compile(r"^(?P<module>(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|.*\.py):(?P<name>\*|[A-Za-z_]\w*)$")
_HEAD = ("apiVersion", "kind", "metadata")
_SCHEMA = "/spec/versions/0/schema/openAPIV3Schema"


@dataclass(slots=True)
class ClassDocument(Document):
    """The manifest of a class; ``places`` says where its parts are in the source."""

    places: dict[str, Location] = field(default_factory=dict)

    def at(self, pointer: str) -> Location:
        """The line of the class or field that ``pointer`` came from."""
        nearest = pointer
        while nearest and nearest not in self.places:
            nearest = nearest.rpartition("/")[0]
        return self.places.get(nearest, Location(self.file))


def read_classes(target: str, diagnostics: Diagnostics) -> list[Document]:
    """The manifests of the classes that ``target`` names. Empty after a diagnostic."""
    match = TARGET.match(target)
    assert match is not None, target
    module = _imported(match["module"], diagnostics)
    if module is None:
        return []
    names = [match["name"]] if match["name"] != "*" else _kinds_in(module)
    found: list[ClassDocument] = []
    for name in names:
        cls = getattr(module, name, None)
        if not isinstance(cls, type) or not is_class(cls):
            said = (
                f"{match['module']} has no class {name}" if cls is None else f"{name} is no class of fields"
            )
            hint = "a msgspec Struct, a dataclass or a pydantic model is wanted"
            diagnostics.error("K017", said, Location(target), hint)
        elif (said_kind := _kind_of(cls)) is None:
            hint = "mark it: @kind(group=…, version=…) of apimachinery.typed.markers"
            diagnostics.error("K017", f"{name} is no kind", ClassSource.of(cls).place, hint)
        else:
            try:
                found.append(_Manifest(cls, said_kind, diagnostics).document())
            except PythonTypeError as fault:
                diagnostics.error("K018", str(fault), ClassSource.of(cls).place, fault.hint)
    if not names:
        diagnostics.error("K017", f"{match['module']} has no class with @kind", Location(target))
    return _joined(found, diagnostics)


def _joined(documents: list[ClassDocument], diagnostics: Diagnostics) -> list[Document]:
    """One definition a kind: the versions of those of one name are put together."""
    found: dict[str, ClassDocument] = {}
    for each in documents:
        first = found.setdefault(each.value["metadata"]["name"], each)
        if first is each:
            continue
        spec, other = first.value["spec"], each.value["spec"]
        if differing := next((key for key in ("scope", "names") if spec[key] != other[key]), ""):
            said = f"{other['names']['kind']} has other {differing} in {other['versions'][0]['name']}"
            hint = "all versions of a kind have the same scope and names"
            diagnostics.error("K017", said, each.at(""), hint)
            continue
        place = f"/spec/versions/{len(spec['versions'])}"
        spec["versions"] += other["versions"]
        first.places |= {
            place + pointer.removeprefix("/spec/versions/0"): at
            for pointer, at in each.places.items()
            if pointer.startswith("/spec/versions/0")
        }
        first.places[place] = each.at("")
    return [*found.values()]


def _imported(name: str, diagnostics: Diagnostics) -> ModuleType | None:
    """The module, imported: its code runs."""
    try:
        if not name.endswith(".py"):
            here = str(Path.cwd())
            if here not in sys.path:
                sys.path.insert(0, here)
            return importlib.import_module(name)
        path = Path(name).resolve()
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.is_file():
            diagnostics.error("K001", "cannot read: no such file", Location(name))
            return None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # whatever the module does wrong
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        diagnostics.error("K017", f"{name} cannot be imported: {said}", Location(name))
        return None


def _kinds_in(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and markers.KIND in vars(value) and value.__module__ == module.__name__
    ]


def _kind_of(cls: type) -> markers.KindMarker | None:
    said = vars(cls).get(markers.KIND)
    if isinstance(said, markers.KindMarker):
        return said
    version, kind = getattr(cls, "API_VERSION", None), getattr(cls, "KIND", None)  # a generated model
    if isinstance(version, str) and isinstance(kind, str) and "/" in version:
        group, _, version = version.partition("/")
        return markers.KindMarker(group=group, version=version, kind=kind)
    return None


@dataclass(frozen=True, slots=True)
class ClassSource:
    """Where a class and its fields are written."""

    place: Location
    lines: dict[str, Location]

    @classmethod
    def of(cls, owner: type) -> ClassSource:
        """The source of a class; without lines where it was not written in a file."""
        lines: dict[str, Location] = {}
        for each in reversed(owner.__mro__):
            place, own = _lines_of(each)
            lines |= own
        return cls(place, lines)

    def of_field(self, name: str) -> Location:
        """The line of a field, maybe in a class that this one inherits it from."""
        return self.lines.get(name, self.place)


def _lines_of(owner: type) -> tuple[Location, dict[str, Location]]:
    """The place of a class, and those of the fields that are written in it."""
    try:
        text, start = inspect.getsourcelines(owner)
        file = _shown(inspect.getsourcefile(owner) or "")
        body = ast.parse(textwrap.dedent("".join(text))).body[0]
    except (OSError, TypeError, SyntaxError):
        return Location(f"{owner.__module__}.{owner.__qualname__}"), {}
    if not isinstance(body, ast.ClassDef):
        return Location(file, "", start, 1), {}
    return Location(file, "", start + body.lineno - 1, 1), {
        node.target.id: Location(file, "", start + node.lineno - 1, 5)
        for node in body.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


@dataclass(slots=True)
class _Manifest:
    """Makes the manifest of one class."""

    cls: type
    kind: markers.KindMarker
    diagnostics: Diagnostics
    places: dict[str, Location] = field(default_factory=dict)

    def document(self) -> ClassDocument:
        said = self.kind
        kind = said.kind or self.cls.__name__
        plural = said.plural or plural_of(kind)
        place = ClassSource.of(self.cls).place
        self.places[""] = place
        members = fields_of(self.cls)
        schema = self._object(self.cls, [each for each in members if each.wire not in _HEAD], _SCHEMA, ())
        version: Json = {
            "name": said.version,
            "served": said.served,
            "storage": said.storage,
            "schema": {"openAPIV3Schema": schema},
        }
        if said.deprecated:
            version |= {"deprecated": True}
            version |= {"deprecationWarning": said.deprecation_warning} if said.deprecation_warning else {}
        schema |= self._extra(schema)
        has_status = any(each.wire == "status" for each in members)
        subresources = self._subresources(has_status if said.status is None else said.status)
        version |= {"subresources": subresources} if subresources else {}
        if said.columns:
            version["additionalPrinterColumns"] = [_column(each) for each in said.columns]
        if said.selectable_fields:
            version["selectableFields"] = [{"jsonPath": path} for path in said.selectable_fields]
        names: Json = {"kind": kind, "plural": plural, "singular": said.singular or kind.lower()}
        names["listKind"] = said.list_kind or f"{kind}List"
        names |= {"shortNames": list(said.short_names)} if said.short_names else {}
        names |= {"categories": list(said.categories)} if said.categories else {}
        metadata: Json = {"name": f"{plural}.{said.group}"}
        metadata |= {"labels": dict(said.labels)} if said.labels else {}
        metadata |= {"annotations": dict(said.annotations)} if said.annotations else {}
        spec: Json = {"group": said.group, "names": names, "scope": said.scope, "versions": [version]}
        spec |= {"conversion": dict(said.conversion)} if said.conversion else {}
        value = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": spec,
        }
        return ClassDocument(place.file, value, places=self.places)

    def _extra(self, schema: Json) -> Json:
        """What ``@kind`` says of the whole object besides its fields."""
        extra = dict(self.kind.extra_json_schema or {})
        if "properties" in extra:
            extra["properties"] = {**schema.get("properties", {}), **extra["properties"]}
        return extra

    def _subresources(self, has_status: bool) -> Json:
        found: Json = {"status": {}} if has_status else {}
        scale = self.kind.scale
        if scale is not None:
            found["scale"] = {
                "specReplicasPath": scale.spec_replicas_path,
                "statusReplicasPath": scale.status_replicas_path,
            }
            if scale.label_selector_path:
                found["scale"]["labelSelectorPath"] = scale.label_selector_path
        return found

    def _object(self, cls: type, members: list[ClassField], pointer: str, inside: tuple[type, ...]) -> Json:
        source = ClassSource.of(cls)
        self.places.setdefault(pointer, source.place)
        schema: Json = {"type": "object"}
        text, described = _docstring(cls)
        if text:
            schema["description"] = text
        properties: Json = {}
        for each in members:
            at = f"{pointer}/properties/{escape_pointer(each.wire)}"
            place = source.of_field(each.attribute)
            if each.wire in properties:
                said = f"{cls.__name__}.{each.attribute}: another field is {each.wire} in JSON"
                self.diagnostics.error("K018", said, place, "give one of them another name")
                continue
            self.places[at] = place
            reader = TypeSchema(lambda part, where: self._part(part, where, (*inside, cls)))
            try:
                found = reader.read(each, at)
            except PythonTypeError as fault:
                said = f"{cls.__name__}.{each.attribute}: {fault}"
                self.diagnostics.error("K018", said, self.places[at], fault.hint)
                continue
            words = each.description or described.get(each.attribute, "")
            properties[each.wire] = (
                {"description": words, **found} if words and "description" not in found else found
            )
        if properties:
            schema["properties"] = properties
        if keeps_unknown(cls):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        required = [each.wire for each in members if each.required and each.wire in properties]
        if required:
            schema["required"] = required
        given = vars(cls).get(markers.RULES, ())
        if given:
            schema["x-kubernetes-validations"] = [rule_schema(rule) for rule in given]
        return schema

    def _part(self, cls: type, pointer: str, inside: tuple[type, ...]) -> Json:
        if cls in inside:
            way = " → ".join(each.__name__ for each in (*inside[inside.index(cls) :], cls))
            raise PythonTypeError(
                f"a type inside itself cannot be written out: {way}", "use dict[str, Any] there"
            )
        return self._object(cls, list(fields_of(cls)), pointer, inside)


def _column(column: markers.Column) -> Json:
    said: Json = {"name": column.name, "jsonPath": column.json_path, "type": column.type}
    said |= {"format": column.format} if column.format else {}
    said |= {"description": column.description} if column.description else {}
    return said | ({"priority": column.priority} if column.priority else {})


def _docstring(cls: type) -> tuple[str, dict[str, str]]:
    """What a class says of itself, and of its fields below "Fields:"."""
    given = cls.__dict__.get("__doc__")
    if not isinstance(given, str) or given.startswith(f"{cls.__name__}("):  # what dataclasses make
        return "", {}
    text, _, below = f"\n{inspect.cleandoc(given)}".partition("\nFields:\n")
    text = text.strip()
    return text if "\n\n" in text else " ".join(text.split()), dict(_described(below))


def _described(text: str) -> Iterator[tuple[str, str]]:
    name, words = "", list[str]()
    for line in text.splitlines():
        match = re.match(r"^ {0,4}(\w+):(?: (.*))?$", line)
        if match:
            if name:
                yield name, " ".join(words).strip()
            name, words = match[1], [match[2] or ""]
        elif name and line.startswith(" "):
            words.append(line.strip())
    if name:
        yield name, " ".join(words).strip()
