"""YAML to documents, with the place of every value, safe against hostile input.

- Aliases are expanded by copying and count towards ``MAX_NODES``, so that a small file cannot unfold into more than
  memory holds; an alias inside its own anchor is refused.
- Scalars are what kubectl takes them for, by the rules of ``apimachinery.wire.yaml``: ``on`` is true, ``010`` is eight,
  a date is text. OpenAPI documents are YAML 1.2: there ``y`` and ``on`` are text, keys too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer

from apimachinery.wire.json import DecodeFault
from apimachinery.wire.yaml import key_text, resolve, slash_line, tagged
from kubewright.diagnostics import Diagnostics
from kubewright.location import Document, Location, Positions, escape_pointer

MAX_DEPTH = 150
MAX_NODES = 2_000_000
MAX_COPIED_NODES = 200_000
_WORDS_OF_1_1 = frozenset(
    form(word) for word in ("y", "n", "yes", "no", "on", "off") for form in (str, str.capitalize, str.upper)
)


def may_be_yaml(text: str) -> bool:
    """Flow-style YAML begins like JSON: with unquoted or single-quoted keys it cannot be JSON."""
    return bool(re.match(r"\s*[\[{]\s*[A-Za-z'#&*!]", text))


def parse_yaml(text: str, name: str, diagnostics: Diagnostics, is_modern: bool) -> list[Document]:
    """All documents of a text, of which ``is_modern`` ones are YAML 1.2. Broken ones are diagnostics."""
    documents: list[Document] = []
    if _may_be_deep(text) and _is_deep(text, name, diagnostics):
        return []
    escaped = text if "\\/" in text else ""  # not in the loop: a file may have 300,000 documents
    loader = loader_of(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            builder = DocumentBuilder(name, diagnostics, text=escaped, is_modern=is_modern)
            value = builder.build(node, "", 1)
            if builder.failed:
                continue
            if value is not None:
                documents.append(Document(name, value, _ready(builder.positions)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(name, "", mark.line + 1, mark.column + 1) if mark else Location(name)
        diagnostics.error("K011", f"broken YAML: {error.problem or error.context}", place)
    except yaml.YAMLError as error:
        diagnostics.error("K011", f"broken YAML: {str(error).splitlines()[0]}", Location(name))
    except RecursionError:
        diagnostics.error("K008", f"nested deeper than {MAX_DEPTH} levels", Location(name))
    finally:
        loader.dispose()
    return documents


_ANCHOR = re.compile(r"(?:^|[\s\[{,:-])&([^\s,\[\]{}]+)")


class _ReusedAnchors(Composer, CParser, yaml.resolver.Resolver):
    """Takes an anchor that occurs again as a new one, as YAML has it (1.2.2, section 7.1); PyYAML refuses it."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


def loader_of(text: str) -> Any:
    """The fast loader, unless an anchor may occur twice."""
    anchors = _ANCHOR.findall(text) if "&" in text else []
    return yaml.CSafeLoader(text) if len(anchors) == len({*anchors}) else _ReusedAnchors(text)


OPENAPI = re.compile(r"""^["']?(swagger|openapi)["']?\s*:""", re.MULTILINE)
_LEADING = re.compile(r"^[ \-?:]*", re.MULTILINE)


def _may_be_deep(text: str) -> bool:
    """Whether ``text`` could nest deeper than allowed, judged from its characters: no block is deeper than the
    indentation (with dashes) of its line, no flow deeper than there are opening brackets."""
    if text.count("[") + text.count("{") > MAX_DEPTH:
        return True
    return max((match.end() - match.start() for match in _LEADING.finditer(text)), default=0) > MAX_DEPTH


def _is_deep(text: str, name: str, diagnostics: Diagnostics) -> bool:
    """Whether ``text`` does nest deeper; composing it would then overflow the stack of the C parser."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    mark = event.start_mark
                    place = Location(name, "", mark.line + 1, mark.column + 1) if mark else Location(name)
                    diagnostics.error("K008", f"nested deeper than {MAX_DEPTH} levels", place)
                    return True
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return False
    return False


def _ready(positions: Positions) -> Callable[[], Positions]:
    return lambda: positions


_RESOLVER: Any = yaml.resolver.Resolver()


@dataclass(slots=True)
class DocumentBuilder:
    """Builds plain values from YAML nodes, and notes where each stood. ``text`` is the document where it may hold an
    escaped slash."""

    name: str
    diagnostics: Diagnostics
    text: str = ""
    is_modern: bool = False
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    failed: bool = False
    nodes: int = 0
    copied: int = 0
    _open: list[int] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def fault(self, code: str, message: str, node: Any, hint: str = "") -> None:
        self.failed = True
        place = Location(self.name, "", node.start_mark.line + 1, node.start_mark.column + 1)
        self.diagnostics.error(code, message, place, hint)

    def build(self, node: Any, pointer: str, depth: int) -> Any:
        if self.failed and self.nodes > MAX_NODES:
            return None
        self.nodes += 1
        identity = id(node)
        if identity in self._seen:
            self.copied += 1
        self._seen.add(identity)
        if self.copied > MAX_COPIED_NODES or self.nodes > MAX_NODES:
            self.nodes = MAX_NODES + 1
            if not self.failed:
                self.fault("K009", "the aliases of this document unfold into too much", node, "write it out")
            return None
        if depth > MAX_DEPTH:
            if not self.failed:
                self.fault("K008", f"nested deeper than {MAX_DEPTH} levels", node)
            return None
        mark = node.start_mark
        self.positions.setdefault(pointer, (mark.line + 1, mark.column + 1))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.fault("K012", f"the tag {node.tag} has no meaning here", node)
            return None
        if identity in self._open:
            self.fault("K009", "an alias stands inside its own anchor", node)
            return None
        self._open.append(identity)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [
                    self.build(item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(node.value)
                ]
            return self._mapping(node, pointer, depth)
        finally:
            self._open.pop()

    def _mapping(self, node: Any, pointer: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge" and not key_node.style:
                for source in self._merge_sources(value_node):
                    built = self.build(source, pointer, depth + 1)
                    if isinstance(built, dict):
                        merged = {**built, **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.fault("K012", "a key must be a string", key_node)
                continue
            key = self._key(key_node)
            place = f"{pointer}/{escape_pointer(key)}"
            if key in found:
                self.fault("K007", f"the key {key!r} stands twice in one mapping", key_node)
                continue
            mark = key_node.start_mark
            self.positions[place] = (mark.line + 1, mark.column + 1)
            found[key] = self.build(value_node, place, depth + 1)
        return (
            {**{key: item for key, item in merged.items() if key not in found}, **found} if merged else found
        )

    def _merge_sources(self, node: Any) -> Iterator[Any]:
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        else:
            yield node

    def _key(self, node: Any) -> str:
        value = self._scalar(node)
        return str(node.value) if isinstance(value, float) else key_text(value)

    def _scalar(self, node: Any) -> Any:
        if not node.style and node.tag == _RESOLVER.resolve(yaml.ScalarNode, node.value, (True, False)):
            if self.is_modern and node.value in _WORDS_OF_1_1:
                return node.value
            return self._resolved(node, resolve)
        if node.style == '"' and self.text:
            if slash_line(self.text, node.start_mark, node.end_mark) is not None:
                self.fault("K011", "broken YAML: found unknown escape character", node, 'write "/" alone')
            return node.value
        if node.tag == "tag:yaml.org,2002:str":
            return node.value
        if node.tag.rpartition(":")[2] not in _TAGS:
            self.fault("K012", f"the tag {node.tag} has no meaning here", node)
            return None
        return self._resolved(node, lambda text: tagged(text, node.tag))

    def _resolved(self, node: Any, read: Callable[[str], Any]) -> Any:
        try:
            return read(node.value)
        except DecodeFault as fault:
            said = str(fault)
            what = (
                f"{node.value} is no JSON value"
                if "unsupported value" in said
                else said.removeprefix("yaml: ")
            )
            self.fault("K012", what, node)
            return None


_TAGS = frozenset({"null", "bool", "int", "float", "timestamp", "binary", "value", "merge"})
