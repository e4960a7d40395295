"""What to wait for of an object, as ``kubectl wait`` writes it. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from apimachinery.client.errors import BadRequest
from apimachinery.client.kinds import live_json
from apimachinery.meta.json_path import PathError, parse_path, print_value

_PATH: Final = re.compile(r"'?(?P<path>\{.*\}|[^=]+?)'?(?:='?(?P<value>.*?)'?)?")

Test: TypeAlias = Callable[[Any], bool]
"""Whether an object is as wanted; it is None while there is none."""


def parse_test(text: str) -> Test:
    """``condition=TYPE[=STATUS]`` (of the current generation), ``jsonpath={.path}[=VALUE]``, ``create``, ``delete``.

    Raises ``BadRequest`` for a text that is none of these.
    """
    what, _, rest = text.partition("=")
    if text in ("create", "delete"):
        return lambda obj: (obj is None) == (text == "delete")
    if what == "condition" and rest:
        name, _, status = rest.partition("=")
        return lambda obj: obj is not None and _has(live_json(obj), name, status or "True")
    if what == "jsonpath" and rest:
        return _path_test(rest)
    raise _refused(f'"{text}" is none of condition=TYPE[=STATUS], jsonpath={{.path}}[=VALUE], create, delete')


def _has(obj: Mapping[str, Any], name: str, status: str) -> bool:
    wanted, generation = (name.lower(), status.lower()), (obj.get("metadata") or {}).get("generation")
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if (str(condition.get("type")).lower(), str(condition.get("status")).lower()) == wanted:
            seen = condition.get("observedGeneration", (obj.get("status") or {}).get("observedGeneration"))
            return not seen or not generation or bool(seen >= generation)
    return False


def _path_test(text: str) -> Test:
    match = _PATH.fullmatch(text)
    try:
        parsed = parse_path(match["path"] if match else text)
    except PathError as error:
        raise _refused(f'jsonpath "{text}": {error}') from None
    wanted = match["value"] if match else None

    def test(obj: Any) -> bool:
        found = [] if obj is None else parsed.find(live_json(obj))
        return bool(found) if wanted is None else [print_value(each) for each in found] == [wanted]

    return test


def _refused(text: str) -> BadRequest:
    return BadRequest(400, "BadRequest", text, has_details=False)
