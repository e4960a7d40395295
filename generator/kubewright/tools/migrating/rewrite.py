"""Edits the text of one YAML document so that it says a new value, and leaves alone what did not change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import yaml

from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text. ``kept`` is False where it had to be written anew, without comments and order."""

    text: str
    kept: bool


def rewrite(text: str, old: Any, new: Any) -> Rewritten:
    """``text``, which says ``old``, edited to say ``new``. JSON stays JSON."""
    if text.lstrip()[:1] == "{":
        indent = 2 if "\n" in text.strip() else None
        return Rewritten(json.dumps(new, indent=indent, ensure_ascii=False) + "\n", True)
    try:
        loader = yaml.CSafeLoader(text)
        try:
            edits = _Edits(text)
            edits.change(loader.get_single_node(), old, new)
        finally:
            loader.dispose()
        edited = edits.apply()
        if wire_yaml.decode(edited.encode()) == new:
            return Rewritten(edited, True)
    except (yaml.YAMLError, DecodeFault, _Unsupported):
        pass
    return Rewritten(wire_yaml.encode(new).decode(), False)


class _Unsupported(Exception):
    """A shape that is not edited in place."""


@dataclass(slots=True)
class _Edits:
    text: str
    edits: list[tuple[int, int, str]] = field(default_factory=list)

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
        self._replace(node, new)

    def _mapping(self, node: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
        pairs = {key.value: (key, value) for key, value in node.value}
        if len(pairs) != len(node.value) or set(pairs) != set(old):
            raise _Unsupported
        column = node.value[0][0].start_mark.column
        added = [name for name in new if name not in old]
        gone = [name for name in old if name not in new]
        block = "".join(_entry(name, new[name], column) for name in added)
        if len(gone) == len(old) or any(self._shares_line(pairs[name][0]) for name in gone):
            start = node.value[0][0].start_mark.index
            self.edits.append((start, self._end(node), _block(new, column).strip()))
            return
        # What is new stands where what went stood, or at the end.
        for name in gone:
            key, value = pairs[name]
            start = self._line_start(key.start_mark.index)
            end = self._line_end(self._end(value))
            self.edits.append((start, end, block))
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
        added = "".join(f", {_flow(name)}: {_flow(new[name])}" for name in new if name not in old)
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
            self.edits.append((start, end, _flow(new)))
            return
        line = self._line_start(start)
        before = self.text[line:start]
        if isinstance(node, yaml.ScalarNode) or before.strip():
            self.edits.append((start, end, _flow(new)))
            return
        self.edits.append((line, end, _block(new, len(before)).rstrip("\n")))

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


def _entry(name: str, value: Any, column: int) -> str:
    return _block({name: value}, column)


def _block(value: Any, column: int) -> str:
    dumped = wire_yaml.encode(value).decode()
    return "".join(" " * column + line + "\n" for line in dumped.splitlines())


def _flow(value: Any) -> str:
    if isinstance(value, str):
        if any(c in value for c in ",[]{}\n"):
            return json.dumps(value, ensure_ascii=False)
        return wire_yaml.encode([value]).decode().removeprefix("- ").rstrip("\n")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(name)}: {_flow(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value)
