"""Conversations as data (YAML files next to the tests), played against an API; the same may be played against a real
kube-apiserver, as their texts are its.

A step is ``[METHOD, PATH, BODY, CODE, HOLDS]``. ``$A`` is the core group's path of a namespace of the story's own,
``$apis/GROUP/VERSION$N`` the same in another group. HOLDS is what the answer contains, or how its message ends; a list
in it is compared whole. ``$NAME`` in it is the namespace. A sixth entry is the texts of Warning headers, in order.
``[WAIT, SECONDS]`` gives controllers time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

Ask = Callable[[str, str, Any], Awaitable[tuple[int, Any, list[str]]]]
HERE = Path(__file__).parent


def stories(name: str) -> dict[str, list[list[Any]]]:
    """The stories of a file, by what they are about."""
    return {each["about"]: each["steps"] for each in yaml.load((HERE / name).read_text(), yaml.CSafeLoader)}


async def play(ask: Ask, steps: list[list[Any]], namespace: str) -> Iterator[str]:
    """What went otherwise than told, a line each."""
    await ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    wrong = []
    for step in steps:
        if step[0] == "WAIT":
            await asyncio.sleep(step[1])
            continue
        method, path, body, code, told, *rest = step
        wanted = named(told, namespace)
        whole = filled(path, namespace)
        status, answer, warnings = await ask(method, whole, body)
        if status != code:
            wrong.append(f"{method} {whole}: {status}, not {code}: {answer}")
        elif isinstance(wanted, str):
            if not answer.get("message", "").endswith(wanted):
                wrong.append(f"{method} {whole}: {answer.get('message')}\n  is not …{wanted}")
        elif not holds(answer, wanted):
            wrong.append(f"{method} {whole}: {wanted} is not in {answer}")
        if rest and warnings != named(rest[0], namespace):
            wrong.append(f"{method} {whole}: warnings {warnings}, not {rest[0]}")
    return iter(wrong)


def filled(path: str, namespace: str) -> str:
    """A path with its namespace."""
    path = path.replace("$apis", "/apis").replace("$A", f"/api/v1/namespaces/{namespace}")
    return path.replace("$N", f"/namespaces/{namespace}")


def named(wanted: Any, namespace: str) -> Any:
    """What is wanted, with the namespace's name in its texts."""
    if isinstance(wanted, str):
        return wanted.replace("$NAME", namespace)
    return [named(each, namespace) for each in wanted] if isinstance(wanted, list) else wanted


def holds(found: Any, wanted: Any) -> bool:
    """Whether everything wanted is in what was found."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(holds(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted)
