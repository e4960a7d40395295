"""What becomes of a conversion's rules (docs/rules.md) where a field of one version is renamed, split or joined, and
where another version becomes the hub.

Rules are as files have them: mappings whose first word is the action. A rule has paths on two sides, those of the spoke
and those of the hub; every change here is one of the paths of one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from kubewright.ir.conversion_steps import covers
from kubewright.source.conversions import WORDS

Rule = dict[str, Any]
Side = Literal["spoke", "hub"]

_OPPOSITE: Final[dict[Side, Side]] = {"spoke": "hub", "hub": "spoke"}
_INVERSE: Final = {"split": "join", "join": "split"}


class UnchangeableError(Exception):
    """A rule that nobody but a person can bring along; the text says which, and why."""


def renamed(rules: Sequence[Rule], side: Side, old: str, new: str) -> list[Rule]:
    """``rules`` after the version on ``side`` calls ``new`` what it called ``old``."""
    result = [_at(rule, side, [_moved(path, old, new) for path in _paths(rule, side)]) for rule in rules]
    if not _exact(rules, side, old):
        there = _opposite(rules, side, old)
        if there is not None:
            result.append(_move(side, new, there))
    return [rule for rule in result if not _says_nothing(rule)]


def split(rules: Sequence[Rule], side: Side, path: str, parts: Sequence[str], separator: str) -> list[Rule]:
    """``rules`` after the version on ``side`` has ``parts`` for what was one string at ``path``. Raises
    ``UnchangeableError``."""
    exact = _exact(rules, side, path)
    rest = [rule for rule in rules if rule not in exact]
    _no_defaults(rest, side, path)
    if not exact:
        there = _opposite(rules, side, path)
        added = [] if there is None else [_cut(side, parts, there, separator)]
        return [*rest, *added]
    rule = exact[0]
    if action_of(rule) in ("keep", "lose"):
        others = [each for each in _paths(rule, side) if each != path]
        return [*rest, _at(rule, side, [*others, *parts])]
    if action_of(rule) == "move" and "values" not in rule:
        return [*rest, _cut(side, parts, _paths(rule, _OPPOSITE[side])[0], separator)]
    pieces = _paths(rule, _OPPOSITE[side])
    if action_of(rule) in _INVERSE and rule["separator"] == separator and len(pieces) == len(parts):
        return [*rest, *(_move(side, here, there) for here, there in zip(parts, pieces, strict=True))]
    raise UnchangeableError(f"{rule} speaks of {path}")


def joined(rules: Sequence[Rule], side: Side, parts: Sequence[str], path: str, separator: str) -> list[Rule]:
    """``rules`` after the version on ``side`` has one string at ``path`` for ``parts``. Raises
    ``UnchangeableError``."""
    exact = [rule for part in parts for rule in _exact(rules, side, part)]
    rest = [rule for rule in rules if rule not in exact]
    for part in parts:
        _no_defaults(rest, side, part)
    if (
        exact
        and action_of(exact[0]) in _INVERSE
        and exact == [exact[0]] * len(parts)
        and _paths(exact[0], side) == [*parts]
        and exact[0]["separator"] == separator
    ):
        return [*rest, _move(side, path, _paths(exact[0], _OPPOSITE[side])[0])]
    if any(action_of(rule) != "move" or "values" in rule for rule in exact):
        raise UnchangeableError(f"{exact[0]} speaks of {', '.join(parts)}")
    there = [_opposite(rules, side, part) for part in parts]
    known = [each for each in there if each is not None]
    if len(known) != len(parts):
        raise UnchangeableError(f"a rule answers for a part of {', '.join(parts)}")
    return [*rest, _cut(_OPPOSITE[side], known, path, separator)]


def inverse(rules: Sequence[Rule]) -> list[Rule]:
    """The rules from the hub's point of view: spoke and hub change places. Raises ``UnchangeableError``."""
    return [_inverse(rule) for rule in rules]


def over(rules: Sequence[Rule], way: Sequence[Rule]) -> list[Rule]:
    """``rules`` of a spoke after its hub's place is taken by a spoke that ``way`` led to that hub. Raises
    ``UnchangeableError``."""
    result = [*rules]
    moves = [rule for rule in way if action_of(rule) == "move"]
    if {rule["move"] for rule in moves} & {rule["to"] for rule in moves if rule["to"] != rule["move"]}:
        raise UnchangeableError("rules of one version give a name to one field and take it from another")
    for rule in way:
        here, there = _paths(rule, "spoke"), _paths(rule, "hub")
        action = action_of(rule)
        if action == "move" and "values" not in rule:
            result = renamed(result, "hub", there[0], here[0])
        elif action == "split":
            result = joined(result, "hub", there, here[0], rule["separator"])
        elif action == "join":
            result = split(result, "hub", there[0], here, rule["separator"])
        elif action in ("keep", "lose") and not any(
            _covering(result, "hub", path) for path in (*here, *there)
        ):
            result.append(rule | {"of": "spoke" if there else "hub"})
        else:
            raise UnchangeableError(f"{rule} cannot be put behind the rules of another version")
    return result


def action_of(rule: Rule) -> str:
    """The word that says what a rule does."""
    return next((word for word in WORDS if word in rule), "")


def _paths(rule: Rule, side: Side) -> list[str]:
    """The paths of a rule in the version on ``side``."""
    action = action_of(rule)
    if action in ("keep", "lose"):
        given = rule[action] if rule.get("of") == side else []
    elif action == "constant":
        given = rule[action] if side == "hub" else []
    elif action == "call":
        given = rule.get(side, [])
    else:
        given = rule[action] if side == "spoke" else rule.get("to", rule[action])
    return [*given] if isinstance(given, list) else [given]


def _at(rule: Rule, side: Side, paths: list[str]) -> Rule:
    """``rule`` with other paths on ``side``."""
    if paths == _paths(rule, side):
        return rule
    action = action_of(rule)
    word = action if side == "spoke" or action in ("keep", "lose", "constant") else "to"
    if action == "call":
        word = side
    changed = {**rule}
    if action == "default":  # without `to` both versions have the one path
        changed["to"] = _paths(rule, "hub")[0]
    is_list = isinstance(rule.get(word, rule[action]), list) or len(paths) > 1
    changed[word] = paths if is_list else paths[0]
    return changed


def _moved(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if covers(old, path) else path


def _move(side: Side, here: str, there: str) -> Rule:
    return {"move": here, "to": there} if side == "spoke" else {"move": there, "to": here}


def _cut(side: Side, parts: Sequence[str], whole: str, separator: str) -> Rule:
    """The rule that makes ``parts`` on ``side`` of one string on the other."""
    if side == "hub":
        return {"split": whole, "to": [*parts], "separator": separator}
    return {"join": [*parts], "to": whole, "separator": separator}


def _exact(rules: Sequence[Rule], side: Side, path: str) -> list[Rule]:
    return [rule for rule in rules if action_of(rule) != "default" and path in _paths(rule, side)]


def _covering(rules: Sequence[Rule], side: Side, path: str) -> list[tuple[str, Rule]]:
    """The rules about ``path`` or what it lies in, with their paths."""
    return [
        (own, rule)
        for rule in rules
        if action_of(rule) != "default"
        for own in _paths(rule, side)
        if covers(own, path)
    ]


def _opposite(rules: Sequence[Rule], side: Side, path: str) -> str | None:
    """Where the other version has the value at ``path``; ``None`` where a rule answers for it."""
    own, rule = max(_covering(rules, side, path), key=lambda pair: len(pair[0]), default=("", None))
    if rule is None:
        return path
    if action_of(rule) != "move":
        return None
    return _paths(rule, _OPPOSITE[side])[0] + path[len(own) :]


def _no_defaults(rules: Sequence[Rule], side: Side, path: str) -> None:
    for rule in rules:
        if any(covers(path, own) for own in _paths(rule, side)):
            raise UnchangeableError(f"{rule} speaks of {path}")


def _says_nothing(rule: Rule) -> bool:
    return action_of(rule) == "move" and rule["move"] == rule["to"] and "values" not in rule


def _inverse(rule: Rule) -> Rule:
    action = action_of(rule)
    if action == "move":
        swapped = {"move": rule["to"], "to": rule["move"]}
        words = rule.get("values")
        return swapped | {"values": {theirs: ours for ours, theirs in words.items()}} if words else swapped
    if action in _INVERSE:
        return {_INVERSE[action]: rule["to"], "to": rule[action], "separator": rule["separator"]}
    if action in ("keep", "lose"):
        return rule | {"of": _OPPOSITE[rule["of"]]}
    if action in ("seconds", "keyed"):
        return rule | {action: rule["to"], "to": rule[action], "of": _OPPOSITE[rule.get("of", "spoke")]}
    if action == "default":
        paths = {"default": rule.get("to", rule["default"]), "to": rule["default"]}
        values: Rule = {_OPPOSITE[side]: rule[side] for side in _OPPOSITE if side in rule}
        return paths | values
    raise UnchangeableError(f"{rule} is not read the other way around")
