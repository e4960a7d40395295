"""Edits the text of one YAML document so that it says a new value, and leaves alone what did not change."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

import yaml

from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault
from kubewright.tools.migrate.anchors import flow, written_out


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text. ``kept`` is False where it had to be rewritten, without comments and order; ``written_out`` is True
    where aliases had to become what they stand for."""

    text: str
    kept: bool
    written_out: bool = False


def rewrite(text: str, old: Any, new: Any) -> Rewritten:
    """``text``, which says ``old``, edited to say ``new``. JSON stays JSON."""
    if text.lstrip()[:1] == "{":
        indent = 2 if "\n" in text.strip() else None
        return Rewritten(json.dumps(new, indent=indent, ensure_ascii=False) + "\n", True)
    edited = _edited(text, old, new)
    if edited is not None:
        return Rewritten(edited, True)
    plain = written_out(text, old)
    edited = _edited(plain, old, new) if plain is not None else None
    if edited is not None:
        return Rewritten(edited, True, True)
    return Rewritten(wire_yaml.encode(new).decode(), False)


def _edited(text: str, old: Any, new: Any) -> str | None:
    for moving in (True, False):
        try:
            loader = yaml.CSafeLoader(text)
            try:
                edits = _Edits(text)
                node = loader.get_single_node()
                if moving:
                    edits.learn(node, old)
                edits.change(node, old, new)
            finally:
                loader.dispose()
            edited = edits.apply()
            if wire_yaml.decode(edited.encode()) == new:
                return edited
        except (yaml.YAMLError, DecodeFault, _Unsupported):
            pass
    return None


class _Unsupported(Exception):
    """A shape that is not edited in place."""


@dataclass(slots=True)
class _Edits:
    text: str
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    moved: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Mappings and lists of the old text by their value, as JSON: (node, its key). What is elsewhere in the new
    value is taken over with its comments and order."""

    def learn(self, node: Any, value: Any, key: Any = None) -> None:
        """Remembers where the old text says which mapping or list."""
        if isinstance(node, yaml.MappingNode) and isinstance(value, dict) and value:
            self.moved.setdefault(json.dumps(value, sort_keys=True), (node, key))
            for name, inner in node.value:
                self.learn(inner, value.get(name.value), name)
        elif isinstance(node, yaml.SequenceNode) and isinstance(value, list) and value:
            self.moved.setdefault(json.dumps(value, sort_keys=True), (node, key))
            for inner, item in zip(node.value, value, strict=False):
                self.learn(inner, item)

    def change(self, node: Any, old: Any, new: Any) -> None:
        if old == new and type(old) is type(new):
            return
        if (
            isinstance(node, yaml.MappingNode)
            and isinstance(old, dict)
            and isinstance(new, dict)
            and new
            and old
        ):
            if node.flow_style:
                if set(old) <= set(new):
                    self._flow_mapping(node, old, new)
                    return
            else:
                self._mapping(node, old, new)
                return
        elif isinstance(node, yaml.SequenceNode) and isinstance(old, list) and isinstance(new, list):
            if not node.flow_style and len(old) == len(new) == len(node.value):
                for item, before, after in zip(node.value, old, new, strict=True):
                    self.change(item, before, after)
                return
            if not node.flow_style and old and new and self._items(node, old, new):
                return
        self._replace(node, new)

    def _items(self, node: Any, old: list[Any], new: list[Any]) -> bool:
        """Items of a block list that came or went; False where the list is to be written anew."""
        starts = [self._line_start(item.start_mark.index) for item in node.value]
        own = all(
            self.text[start : item.start_mark.index].strip() == "-"
            for start, item in zip(starts, node.value, strict=True)
        )
        if not own or len(old) != len(node.value):
            return False
        column = node.start_mark.column
        last = self._line_end(self._end(node.value[-1]))
        was, said = ([json.dumps(item, sort_keys=True) for item in items] for items in (old, new))
        for what, i, j, k, m in SequenceMatcher(None, was, said, autojunk=False).get_opcodes():
            if what == "equal":
                continue
            if what == "replace" and j - i == m - k:
                for item, before, after in zip(node.value[i:j], old[i:j], new[k:m], strict=True):
                    self.change(item, before, after)
                continue
            start = starts[i] if i < len(starts) else last
            end = self._line_end(self._end(node.value[j - 1])) if j > i else start
            newline = "" if start == 0 or self.text[start - 1] == "\n" else "\n"
            self.edits.append((start, end, newline + self._block(new[k:m], column)))
        return True

    def _mapping(self, node: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
        pairs = {key.value: (key, value) for key, value in node.value}
        if len(pairs) != len(node.value) or set(pairs) != set(old):
            raise _Unsupported
        column = node.value[0][0].start_mark.column
        added = [name for name in new if name not in old]
        gone = [name for name in old if name not in new]
        for before, after in _renamed(old, new, gone, added):
            key = pairs[before][0]
            self.edits.append((key.start_mark.index, key.end_mark.index, flow(after)))
            gone.remove(before)
            added.remove(after)
            old = {after if name == before else name: value for name, value in old.items()}
            pairs = {after if name == before else name: pair for name, pair in pairs.items()}
        block = "".join(self._block({name: new[name]}, column) for name in added)
        if len(gone) == len(old) or any(self._shares_line(pairs[name][0]) for name in gone):
            start, end = node.value[0][0].start_mark.index, self._end(node)
            kept = "".join(f"\n{' ' * column}{text}" for text in self._comments(start, end, node))
            self.edits.append((start, end, self._block(new, column).strip() + kept))
            return
        # What is new stands where what went stood, or at the end; comments it has taken along are not said twice.
        written = block
        for name in gone:
            key, value = pairs[name]
            start = self._line_start(key.start_mark.index)
            end = self._line_end(self._end(value))
            comments = [text for text in self._comments(start, end, value) if text not in written]
            self.edits.append((start, end, "".join(f"{' ' * column}{text}\n" for text in comments) + block))
            block = ""
        if block:
            last = node.value[-1][1]
            end = self._line_end(self._end(last))
            newline = "" if end == 0 or self.text[end - 1 : end] == "\n" else "\n"
            self.edits.append((end, end, newline + block))
        for name, (_, value) in pairs.items():
            if name in new:
                self.change(value, old[name], new[name])

    def _flow_mapping(self, node: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
        added = "".join(f", {flow(name)}: {flow(new[name])}" for name in new if name not in old)
        for key, value in node.value:
            if key.value not in new:
                raise _Unsupported
            self.change(value, old[key.value], new[key.value])
        if added:
            end = self._end(node.value[-1][1])
            self.edits.append((end, end, added))

    def _shares_line(self, key: Any) -> bool:
        """The first entry of a list's item stands on the line of the dash."""
        start = key.start_mark.index
        return bool(self.text[self._line_start(start) : start].strip())

    def _replace(self, node: Any, new: Any) -> None:
        start, end = node.start_mark.index, self._end(node)
        block = isinstance(new, dict | list) and new and not getattr(node, "flow_style", False)
        if not block:
            self.edits.append((start, end, flow(new)))
            return
        line = self._line_start(start)
        before = self.text[line:start]
        if isinstance(node, yaml.ScalarNode) or before.strip():
            self.edits.append((start, end, flow(new)))
            return
        self.edits.append((line, end, self._block(new, len(before)).rstrip("\n")))

    def _comments(self, start: int, end: int, node: Any) -> list[str]:
        """The comments of a text that goes, except for those of a value that is taken over elsewhere."""
        held: list[tuple[int, int]] = []
        _scalars(node, held)
        found = []
        for match in re.finditer(r"(?:(?<=\s)|^)#[^\n]*", self.text[start:end], re.MULTILINE):
            place = start + match.start()
            if not any(low <= place < high for low, high in held):
                found.append(match.group().rstrip())
        return found

    def _block(self, value: Any, column: int) -> str:
        """A value in block style at a column, in its own order; what the old text says already is taken from there."""
        indent = " " * column
        lines: list[str] = []
        if isinstance(value, dict):
            for name, inner in value.items():
                key = f"{indent}{flow(name)}:"
                known = self._taken(inner, column)
                if known is not None:
                    lines.append(key + known)
                elif isinstance(inner, dict | list) and inner:
                    below = column + 2 if isinstance(inner, dict) else column
                    lines.append(f"{key}\n{self._block(inner, below)}".rstrip("\n"))
                else:
                    lines += [indent + line for line in wire_yaml.encode({name: inner}).decode().splitlines()]
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict | list) and item:
                    lines.append(f"{indent}- {self._block(item, column + 2).strip()}")
                else:
                    lines += [indent + line for line in wire_yaml.encode([item]).decode().splitlines()]
        return "".join(line + "\n" for line in lines)

    def _taken(self, value: Any, column: int) -> str | None:
        """What is behind the key of a value, from the old text, for a key at ``column``."""
        if not isinstance(value, dict | list) or not value:
            return None
        node, key = self.moved.get(json.dumps(value, sort_keys=True), (None, None))
        if key is None or node.value == [] or _has_anchor(node):
            return None
        end = self._end(node)
        rest = self.text[end : self._line_end(end)]
        if rest.lstrip().startswith("#"):
            end += len(rest.rstrip())
        text = self.text[key.end_mark.index : end].lstrip(" ").removeprefix(":")
        shift = column - key.start_mark.column
        first, *lines = text.split("\n")
        if shift < 0 and any(line.strip() and line[:-shift].strip() for line in lines):
            return None
        return "\n".join([first, *(_shifted(line, shift) for line in lines)])

    def _end(self, node: Any) -> int:
        """Where the text of a value ends; of a block, at its last entry and not where the next token begins."""
        if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
            return self._end(node.value[-1][1])
        if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
            return self._end(node.value[-1])
        end: int = node.end_mark.index
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            return len(self.text[:end].rstrip())
        return end

    def _line_start(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        if index and self.text[index - 1] == "\n":
            return index
        found = self.text.find("\n", index)
        return len(self.text) if found < 0 else found + 1

    def apply(self) -> str:
        text = self.text
        for start, end, new in sorted(self.edits, key=lambda e: (e[0], e[1]), reverse=True):
            text = text[:start] + new + text[end:]
        return text


def _renamed(
    old: dict[str, Any], new: dict[str, Any], gone: list[str], added: list[str]
) -> list[tuple[str, str]]:
    """Keys that are called otherwise and hold what they held, where no other key could be meant."""
    pairs = []
    for before in gone:
        same = [name for name in added if new[name] == old[before] and type(new[name]) is type(old[before])]
        rivals = [name for name in gone if old[name] == old[before]]
        if len(same) == len(rivals) == 1:
            pairs.append((before, same[0]))
    return pairs


def _scalars(node: Any, found: list[tuple[int, int]]) -> None:
    """Collects where the scalars of a value begin and end."""
    if isinstance(node, yaml.ScalarNode):
        found.append((node.start_mark.index, node.end_mark.index))
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _scalars(key, found)
            _scalars(value, found)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _scalars(item, found)


def _has_anchor(node: Any) -> bool:
    """Whether a value is read from more than one place: an alias stands for a node of another."""
    spans: list[tuple[int, int]] = []
    _scalars(node, spans)
    return any(low < node.start_mark.index or high > node.end_mark.index for low, high in spans)


def _shifted(line: str, columns: int) -> str:
    if not line.strip():
        return ""
    return " " * columns + line if columns >= 0 else line[-columns:]
