"""The operations of ordinary OpenAPI documents, v2 and v3, with their parameters, bodies, answers and credentials.

Documents whose paths are those of a Kubernetes-style API (``x-kubernetes-action``) have resources instead
(``source.paths``). Objects that are written out at an operation become definitions that are named after it. What cannot
be read is left out with a warning (K112): a client for the rest is of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kubewright.diagnostics import Diagnostics
from kubewright.ir.operations import (
    LINES,
    Answer,
    Content,
    Interface,
    Listing,
    Operation,
    Parameter,
    SecurityScheme,
)
from kubewright.ir.types import (
    Definition,
    Json,
    Primitive,
    Ref,
    Scalar,
    Value,
)
from kubewright.location import Document, escape_pointer
from kubewright.source.credentials import alternatives_of, scheme_of, server_of
from kubewright.source.pages import pages_of
from kubewright.source.schema import Dialect
from kubewright.source.written_out import WrittenOut

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_STATUS = re.compile(r"[1-5](\d\d|XX)|default")
_IGNORED_HEADERS = ("accept", "content-type", "authorization")
_COLLECTIONS = {
    "csv": ("", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("", True),
}
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"


def read_interface(
    document: Document, dialect: Dialect, taken: set[str], diagnostics: Diagnostics
) -> tuple[Interface | None, tuple[Definition, ...]]:
    """The operations of ``document`` and the definitions made for them, none called as those ``taken``; ``None`` where
    it has none of this kind."""
    paths = document.value.get("paths")
    if not isinstance(paths, dict) or not paths or any(_is_kubernetes(item) for item in paths.values()):
        return None, ()
    schemas = WrittenOut(document, dialect, set(taken), diagnostics)
    interface = _Reader(document, diagnostics, schemas).read(paths)
    return (interface, tuple(schemas.definitions)) if interface.operations else (None, ())


def _is_kubernetes(item: Json) -> bool:
    return isinstance(item, dict) and any(
        isinstance(operation, dict) and "x-kubernetes-action" in operation for operation in item.values()
    )


@dataclass(slots=True)
class _Reader:
    document: Document
    diagnostics: Diagnostics
    schemas: WrittenOut
    names: dict[str, int] = field(default_factory=dict)
    forms: set[str] = field(default_factory=set)

    @property
    def is_v2(self) -> bool:
        return "swagger" in self.document.value

    def read(self, paths: Json) -> Interface:
        value = self.document.value
        schemes = tuple(self._schemes())
        known = {scheme.name for scheme in schemes}
        operations: list[Operation] = []
        for path, item in paths.items():
            pointer = f"/paths/{escape_pointer(path)}"
            found, pointer = self._followed(item, pointer)
            if not isinstance(found, dict) or not path.startswith("/"):
                self._warn("a path must begin with / and hold operations", pointer)
                continue
            operations += [
                self._operation(path, method, found, pointer, known)
                for method in METHODS
                if isinstance(found.get(method), dict)
            ]
        info = value.get("info")
        title = info.get("title") if isinstance(info, dict) else ""
        return Interface(
            title=title if isinstance(title, str) else "",
            server=server_of(value, self.is_v2),
            operations=tuple(operations),
            schemes=schemes,
            forms=frozenset(self.forms),
        )

    def _warn(self, message: str, pointer: str) -> None:
        self.diagnostics.warning("K112", message, self.document.at(pointer), "it is left out of the client")

    def _followed(self, value: Json, pointer: str) -> tuple[Json, str]:
        """``value`` with its references followed, and where it is."""
        for _ in range(20):
            target = value.get("$ref") if isinstance(value, dict) else None
            if not isinstance(target, str):
                return value, pointer
            if not target.startswith("#/"):
                self._warn(f"cannot resolve $ref {target!r}", pointer)
                return None, pointer
            value, pointer = self.document.value, target[1:]
            for token in target[2:].split("/"):
                step = token.replace("~1", "/").replace("~0", "~")
                value = value.get(step) if isinstance(value, dict) else None
        return None, pointer

    def _schemes(self) -> Iterator[SecurityScheme]:
        value = self.document.value
        components = value.get("components")
        pointer = "/securityDefinitions" if self.is_v2 else "/components/securitySchemes"
        found = (
            value.get("securityDefinitions")
            if self.is_v2
            else components.get("securitySchemes")
            if isinstance(components, dict)
            else None
        )
        for name, given in found.items() if isinstance(found, dict) else ():
            said, _ = self._followed(given, f"{pointer}/{escape_pointer(name)}")
            scheme = scheme_of(name, said) if isinstance(said, dict) else None
            if scheme is not None:
                yield scheme

    def _operation(self, path: str, method: str, item: Json, pointer: str, known: set[str]) -> Operation:
        said = item[method]
        place = f"{pointer}/{method}"
        name = self._name(said.get("operationId"), method, path, place)
        parameters, sent = self._parameters(item, said, pointer, method, path)
        bodies, needs_body = (
            self._bodies_v2(sent, said, name, place) if self.is_v2 else self._bodies(said, name, place)
        )
        tags = said.get("tags")
        tag = tags[0] if isinstance(tags, list) and tags and isinstance(tags[0], str) else _tag_of(path)
        server = "" if self.is_v2 else server_of(said, False) or server_of(item, False)
        words = [said.get("summary"), said.get("description")]
        return Operation(
            name=name,
            tag=tag,
            method=method.upper(),
            path=path,
            location=self.document.at(place),
            parameters=tuple(parameters),
            bodies=bodies,
            needs_body=needs_body,
            answers=tuple(self._answers(said, name, place)),
            security=alternatives_of(said.get("security", self.document.value.get("security")), known),
            server=server if "://" in server else "",
            doc="\n\n".join(dict.fromkeys(word.strip() for word in words if isinstance(word, str) and word)),
            deprecated=said.get("deprecated") is True,
            pages=self._pages(method, said, parameters, place),
        )

    def _pages(self, method: str, said: Json, parameters: list[Parameter], place: str) -> Listing | None:
        if method != "get":
            return None
        in_query = [parameter.name for parameter in parameters if parameter.place == "query"]
        name = said.get("operationId", "")
        return pages_of(said, name, in_query, lambda given: self._followed(given, place)[0])

    def _name(self, given: Json, method: str, path: str, place: str) -> str:
        name = (
            given
            if isinstance(given, str) and given
            else " ".join([method, *(f"by {p[1:-1]}" if p[0] == "{" else p for p in path.split("/") if p)])
        )
        count = self.names[name] = self.names.get(name, 0) + 1
        if count == 1:
            return name
        said = f"the operationId {name!r} is that of another operation too"
        self.diagnostics.warning("K113", said, self.document.at(place), f"it is {name} {count} here")
        return f"{name} {count}"

    # parameters

    def _parameters(
        self, item: Json, said: Json, pointer: str, method: str, path: str
    ) -> tuple[list[Parameter], list[tuple[Json, str]]]:
        """The parameters of an operation, and what is sent in its body (OpenAPI v2)."""
        found: dict[tuple[str, str], tuple[Json, str]] = {}
        for given, place in (
            (item.get("parameters"), f"{pointer}/parameters"),
            (said.get("parameters"), f"{pointer}/{method}/parameters"),
        ):
            for index, entry in enumerate(given if isinstance(given, list) else []):
                parameter, where = self._followed(entry, f"{place}/{index}")
                if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str):
                    self._warn("a parameter must have a name and a place", where)
                    continue
                found[str(parameter["name"]), str(parameter.get("in"))] = (parameter, where)
        parameters, sent = [], []
        for (name, place), (parameter, where) in found.items():
            if place in ("body", "formData"):
                sent.append((parameter, where))
            elif place not in ("path", "query", "header", "cookie"):
                self._warn(f"parameter {name!r} is in {place!r}", where)
            elif place == "path" and f"{{{name}}}" not in path:
                self._warn(f"parameter {name!r} is not in the path {path}", where)
            elif place != "header" or name.lower() not in _IGNORED_HEADERS:
                parameters.append(self._parameter(name, place, parameter, where))
        declared = {parameter.name for parameter in parameters if parameter.place == "path"}
        for name in re.findall(r"\{([^{}]+)\}", path):
            if name not in declared:
                text = Value(type=Scalar(Primitive.STRING), location=self.document.at(pointer))
                parameters.append(Parameter(name=name, place="path", required=True, value=text))
                declared.add(name)
        return parameters, sent

    def _parameter(self, name: str, place: str, said: Json, pointer: str) -> Parameter:
        content = said.get("content")
        media_type = ""
        style, explode = said.get("style", ""), said.get("explode")
        if self.is_v2:
            schema, where = {k: v for k, v in said.items() if k not in _PARAMETER_WORDS}, pointer
            if not schema.get("type"):
                schema["type"] = "string"
            style, explode = _COLLECTIONS.get(str(said.get("collectionFormat", "csv")), ("", False))
            style = style if place in ("query", "cookie") else ""
        elif isinstance(content, dict) and content:
            media_type = str(next(iter(content)))
            body = content[media_type]
            schema = body.get("schema", {}) if isinstance(body, dict) else {}
            where = f"{pointer}/content/{escape_pointer(media_type)}/schema"
        else:
            schema, where = said.get("schema", {"type": "string"}), f"{pointer}/schema"
        usual = "form" if place in ("query", "cookie") else "simple"
        if not isinstance(style, str):
            style = ""
        value = self.schemas.read(schema, _class_word(name), where)
        return Parameter(
            name=name,
            place=place,
            required=place == "path" or said.get("required") is True,
            value=value,
            style="" if style == usual else style,
            explode=explode
            if isinstance(explode, bool)
            else style == "form" or (usual == "form" and not style),
            media_type=media_type,
            doc=said["description"] if isinstance(said.get("description"), str) else "",
        )

    # bodies

    def _bodies(self, said: Json, name: str, place: str) -> tuple[tuple[Content, ...], bool]:
        if "requestBody" not in said:
            return (), False
        body, where = self._followed(said["requestBody"], f"{place}/requestBody")
        if not isinstance(body, dict):
            return (), False
        word = where.rpartition("/")[2] if where.startswith("/components/") else name
        contents = tuple(self._contents(body.get("content"), f"{_class_word(word)}Request", where))
        for content in contents:
            if content.media_type == _MULTIPART and content.value and isinstance(content.value.type, Ref):
                self.forms.add(content.value.type.name)
        return contents, body.get("required") is True and bool(contents)

    def _contents(self, given: Json, name: str, pointer: str) -> Iterator[Content]:
        for media_type, said in given.items() if isinstance(given, dict) else ():
            schema = said.get("schema") if isinstance(said, dict) else None
            where = f"{pointer}/content/{escape_pointer(str(media_type))}/schema"
            value = None
            if isinstance(schema, dict) and _is_structured(str(media_type)):
                value = self.schemas.read(schema, name, where)
            styles = said.get("encoding", {}) if isinstance(said, dict) else {}
            yield Content(
                media_type=str(media_type),
                value=value,
                styles=tuple(
                    (str(key), str(each["style"]))
                    for key, each in (styles.items() if isinstance(styles, dict) else ())
                    if isinstance(each, dict) and each.get("style", "form") != "form"
                ),
            )

    def _bodies_v2(
        self, sent: list[tuple[Json, str]], said: Json, name: str, place: str
    ) -> tuple[tuple[Content, ...], bool]:
        takes = _texts(said.get("consumes", self.document.value.get("consumes")))
        body = next(((each, where) for each, where in sent if each.get("in") == "body"), None)
        if body is not None:
            parameter, where = body
            value = self.schemas.read(
                parameter.get("schema", {}), f"{_class_word(name)}Request", f"{where}/schema"
            )
            contents = tuple(
                Content(media_type=media, value=value if _is_structured(media) else None)
                for media in takes or ("application/json",)
            )
            return contents, parameter.get("required") is True
        if not sent:
            return (), False
        has_file = any(each.get("type") == "file" for each, _ in sent)
        media = next((m for m in takes if m in (_FORM, _MULTIPART)), _MULTIPART if has_file else _FORM)
        media = _MULTIPART if has_file else media
        schema = {
            "type": "object",
            "properties": {each["name"]: _form_field(each) for each, _ in sent},
            "required": [each["name"] for each, _ in sent if each.get("required") is True],
        }
        value = self.schemas.read(schema, f"{_class_word(name)}Request", place, f"{place}#form")
        if media == _MULTIPART and isinstance(value.type, Ref):
            self.forms.add(value.type.name)
        return (Content(media_type=media, value=value),), bool(schema["required"])

    # answers

    def _answers(self, said: Json, name: str, place: str) -> Iterator[Answer]:
        answers = said.get("responses")
        for status, given in answers.items() if isinstance(answers, dict) else ():
            text = str(status)
            if text.startswith("x-"):
                continue
            text = text if text == "default" else text.upper()
            answer, where = self._followed(given, f"{place}/responses/{escape_pointer(str(status))}")
            if not _STATUS.fullmatch(text) or not isinstance(answer, dict):
                self._warn(f"{text!r} is no status of an answer", where)
                continue
            shared = where.startswith(("/components/", "/responses/"))
            word = _class_word(where.rpartition("/")[2] if shared else name)
            suffix = "Response" if shared or text[:1] in "2d" else f"{text.title()}Response"
            if self.is_v2:
                contents = tuple(self._contents_v2(answer, said, f"{word}{suffix}", where))
            else:
                contents = tuple(self._contents(answer.get("content"), f"{word}{suffix}", where))
            yield Answer(status=text, contents=contents)

    def _contents_v2(self, answer: Json, said: Json, name: str, pointer: str) -> Iterator[Content]:
        schema = answer.get("schema")
        if not isinstance(schema, dict):
            return
        gives = _texts(said.get("produces", self.document.value.get("produces")))
        if schema.get("type") == "file":
            yield from (Content(media_type=media) for media in gives or ("*/*",))
            return
        value = self.schemas.read(schema, name, f"{pointer}/schema")
        for media in gives or ("application/json",):
            yield Content(media_type=media, value=value if _is_structured(media) else None)


_PARAMETER_WORDS = frozenset(
    {"name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "example"}
)


def _form_field(parameter: Json) -> Json:
    schema = {key: item for key, item in parameter.items() if key not in _PARAMETER_WORDS - {"description"}}
    return {**schema, "type": "string", "format": "binary"} if schema.get("type") == "file" else schema


def _is_structured(media_type: str) -> bool:
    """Whether bodies of a media type are values of a schema: JSON, lines of it, and forms."""
    plain = media_type.partition(";")[0].strip().lower()
    known = (_FORM, _MULTIPART, "application/json", "text/json", "*/*", *LINES)
    return plain in known or plain.endswith("+json")


def _texts(given: Json) -> tuple[str, ...]:
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()


def _class_word(text: str) -> str:
    parts = re.split(r"[^A-Za-z0-9]+", text)
    return "".join(part[0].upper() + part[1:] for part in parts if part) or "Value"


def _tag_of(path: str) -> str:
    """What untagged operations are grouped by: the first part of the path that is neither a parameter nor a version."""
    for part in path.split("/"):
        if part and part[0] != "{" and not re.fullmatch(r"v?\d+(\.\d+)*|api", part):
            return part
    return "default"
