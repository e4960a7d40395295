"""A conversation: what is said to a server, in order, as data.

A step is a mapping:

    method, path, query, headers, as    the request; ``as`` names a user (default admin, ``nobody`` sends no token)
    body | text | hex                   what is sent: a value (JSON), text as it is, bytes in hexadecimal
    encoding                            json (default), yaml, cbor or protobuf: how ``body`` is written
    save: {name: path}                  keeps a value of the answer, for ``{name}`` in later steps
    until: {path, equals}               asks again until that part of the answer is there, or has that value
    watch: name, then take: name        opens a watch; takes ``count`` events of it within ``seconds``
    kubectl, stdin, env, version        no request but a command line: what follows ``kubectl``, its input, variables,
                                        and which of the binaries given
    sleep                               seconds
    quiet                               the answer is not compared
    expect                              the answer that a kept scenario wants

``{run}`` stands for a suffix of the run, ``{ns}`` for the conversation's own namespace, in every string of a step.
CRDs that a conversation needs are in ``crds``; the runner installs each different one once.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

Step = dict[str, Any]

_VARIABLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass
class Conversation:
    """``area`` is what the agreement is summed by; ``name`` is unique in a run."""

    area: str
    name: str
    steps: list[Step]
    crds: list[dict[str, Any]] = field(default_factory=list)
    namespace: bool = True
    about: str = ""


def with_steps(conversation: Conversation, steps: list[Step]) -> Conversation:
    """The same with other steps."""
    return replace(conversation, steps=steps)


def fill(value: Any, variables: dict[str, Any]) -> Any:
    """``{name}`` becomes the variable's value, in keys and values; empty where an answer had none."""
    if isinstance(value, dict):
        return {fill(key, variables): fill(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [fill(each, variables) for each in value]
    if isinstance(value, str) and "{" in value:
        return _VARIABLE.sub(lambda found: _text(variables.get(found[1], found[0])), value)
    return value


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def at(value: Any, path: str) -> Any:
    """The value at a dotted path, None where there is none; numbers are positions in lists."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def read(path: Path, folder: Path) -> Conversation:
    """A scenario file; its area is the folder it is in."""
    found = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    name = str(path.relative_to(folder).with_suffix("")).replace("/", ".")
    return Conversation(
        name.partition(".")[0],
        name,
        found["steps"],
        found.get("crds", []),
        found.get("namespace", True),
        found.get("about", ""),
    )


def write(conversation: Conversation) -> str:
    """A conversation as the text of a scenario file."""
    document: dict[str, Any] = {"about": conversation.about or "what it shows, in one line"}
    if not conversation.namespace:
        document["namespace"] = False
    if conversation.crds:
        document["crds"] = conversation.crds
    document["steps"] = conversation.steps
    plain = json.loads(json.dumps(document))  # no aliases of shared parts
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=140)
