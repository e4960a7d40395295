"""A YAML document without its anchors: each alias and merge key says itself what it stood for.

What is edited in place cannot keep an alias whose anchor changes. Written out, the document says the same, and its
comments stay where they are.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault

_COLLECTION = (yaml.MappingStartEvent, yaml.SequenceStartEvent)


def flow(value: Any) -> str:
    """A value in flow style, on one line."""
    if isinstance(value, str):
        if any(c in value for c in ",[]{}\n"):
            return json.dumps(value, ensure_ascii=False)
        return wire_yaml.encode([value]).decode().removeprefix("- ").rstrip("\n")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(name)}: {flow(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return json.dumps(value)


def written_out(text: str, value: Any) -> str | None:
    """``text``, which says ``value``, without anchors, aliases and merge keys. None where it has none, or cannot be
    written so."""
    if "&" not in text and "<<" not in text:
        return None
    try:
        events = yaml.parse(text, Loader=yaml.CSafeLoader)
        edits = _Edits(text)
        for event in events:
            if isinstance(event, (yaml.ScalarEvent, *_COLLECTION)):
                edits.node(event, events, value, None)
                break
        new = edits.apply()
        return new if edits.edits and wire_yaml.decode(new.encode()) == value else None
    except (yaml.YAMLError, DecodeFault, KeyError, IndexError, TypeError):
        return None


@dataclass(slots=True)
class _Edits:
    text: str
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def node(self, event: Any, events: Iterator[Any], value: Any, column: int | None) -> int:
        """Edits the node that ``event`` begins, which says ``value``; ``column`` is that of the block that it is in,
        None in flow style and at the root. Answers where its text ends."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, value, column)
        if event.anchor:
            self._anchor(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, events, value)
        end: int = event.end_mark.index
        if isinstance(event, yaml.SequenceStartEvent):
            inner = None
            for position, item in enumerate(_until(events, yaml.SequenceEndEvent)):
                if not event.flow_style and position == 0:
                    inner = self._dash(item.start_mark.index)
                end = self.node(item, events, value[position], inner)
        return end

    def _mapping(self, event: Any, events: Iterator[Any], value: Any) -> int:
        own: list[str] = []
        merges: list[tuple[int, int, int]] = []
        end: int = event.end_mark.index
        for key in _until(events, yaml.MappingEndEvent):
            start, column = key.start_mark.index, key.start_mark.column
            if (
                isinstance(key, yaml.ScalarEvent)
                and key.value == "<<"
                and (key.implicit[0] or key.tag == "tag:yaml.org,2002:merge")
            ):
                end = _skip(next(events), events)
                merges.append((start, end, column))
                continue
            if isinstance(key, yaml.AliasEvent):
                raise KeyError("a key that is an alias is not followed")
            if key.anchor:
                self._anchor(key)
            name = wire_yaml.key_text(
                wire_yaml.resolve(key.value) if key.implicit[0] and not key.style else key.value
            )
            own.append(name)
            end = self.node(next(events), events, value[name], None if event.flow_style else column)
        for position, (start, stop, column) in enumerate(merges):
            # All merge keys of a mapping are said by the first: together they give what is not its own.
            merged = {name: value[name] for name in value if name not in own} if position == 0 else {}
            if event.flow_style:
                said = flow(merged)[1:-1]
                rest = re.compile(r"\s*,\s*").match(self.text, stop)
                stop = rest.end() if rest and not said else stop
                self.edits.append((start, stop, said))
            elif merged:
                self.edits.append((start, stop, _block(merged, column).strip()))
            else:
                line = self.text.find("\n", stop)
                self.edits.append((start, len(self.text) if line < 0 else line + 1 + column, ""))
        return end

    def _alias(self, event: Any, value: Any, column: int | None) -> int:
        start: int = event.start_mark.index
        end: int = event.end_mark.index
        if column is None or not isinstance(value, dict | list) or not value:
            self.edits.append((start, end, flow(value)))
            return end
        line = self.text.rfind("\n", 0, start) + 1
        if self.text[line:start].rstrip().endswith("-"):  # an item of a list
            self.edits.append((start, end, _block(value, column + 2).strip()))
            return end
        stop = self.text.find("\n", end)
        stop = len(self.text) if stop < 0 else stop
        inner = column + 2 if isinstance(value, dict) else column
        self.edits.append((start, end, ""))
        self.edits.append((stop, stop, "\n" + _block(value, inner).rstrip("\n")))
        return end

    def _anchor(self, event: Any) -> None:
        found = re.compile(rf"&{re.escape(event.anchor)}[ \t]*").search(self.text, event.start_mark.index)
        if found is not None:
            self.edits.append((found.start(), found.end(), ""))

    def _dash(self, index: int) -> int:
        """The column of the dash before an item."""
        dash = self.text.rfind("-", 0, index)
        return dash - (self.text.rfind("\n", 0, dash) + 1)

    def apply(self) -> str:
        text = self.text
        for start, end, new in sorted(self.edits, key=lambda e: (e[0], e[1]), reverse=True):
            text = text[:start] + new + text[end:]
        return re.sub(r"(?m)(?<=:)[ \t]+$", "", text)


def _until(events: Iterator[Any], last: type) -> Iterator[Any]:
    for event in events:
        if isinstance(event, last):
            return
        yield event


def _skip(event: Any, events: Iterator[Any]) -> int:
    """Passes over a node; where its text ends."""
    depth = 0
    end: int = event.end_mark.index
    while True:
        depth += isinstance(event, _COLLECTION)
        depth -= isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
        if (
            isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent))
            or event.end_mark.index > event.start_mark.index
        ):
            end = event.end_mark.index
        if depth == 0:
            return end
        event = next(events)


def _block(value: Any, column: int) -> str:
    return textwrap.indent(wire_yaml.encode(value).decode(), " " * column)
