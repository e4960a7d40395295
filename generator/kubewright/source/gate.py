"""OpenAPI documents must be valid OpenAPI before they are read: the schemas of openapi-spec-validator decide.

They judge the structure of a document, each fault with its place. What schemas mean, ``source.schema`` reads, and
``ir.check`` holds defaults against their types. Judging takes seconds on the documents of Kubernetes, so a verdict is
kept by the hash of the content, below the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.ir.types import Json
from kubewright.location import escape_pointer


@dataclass(frozen=True, slots=True)
class GateFault:
    """One fault the validator found: where (a JSON pointer), and in its words."""

    pointer: str
    message: str


def find_faults(value: Json) -> list[GateFault]:
    """The faults of an OpenAPI document, from the cache where its content was judged before."""
    content = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    path = _cache_folder() / f"{hashlib.sha256(_validator_version() + content).hexdigest()}.json"
    known = _read_verdict(path)
    if known is None:
        known = list(_judge(value))
        _write_verdict(path, known)
    return known


def _judge(value: Json) -> Iterable[GateFault]:
    import openapi_spec_validator

    validator: Any = openapi_spec_validator.OpenAPIV30SpecValidator
    if "swagger" in value:
        validator = openapi_spec_validator.OpenAPIV2SpecValidator
    elif str(value.get("openapi", "")).startswith("3.1"):
        validator = openapi_spec_validator.OpenAPIV31SpecValidator
    for error in validator.schema_validator.iter_errors(value):
        fault = _innermost(error)
        if "swagger" in value and fault.message.startswith("'nullable' do"):
            continue  # OpenAPI 3 has it; many generators write it in 2.0 too, and it is read
        pointer = "".join(f"/{escape_pointer(str(step))}" for step in fault.absolute_path)
        yield GateFault(pointer, _translate(fault.message))


def _innermost(error: Any) -> Any:
    """The fault behind "fits none of these": the deepest of an alternative that is no reference."""
    while error.context:
        told = [inner for inner in error.context if "$ref" not in inner.message] or error.context
        error = max(told, key=lambda inner: len(inner.absolute_path))
    return error


_WORDING = 3
"""Raised when the words of kept verdicts change."""

_FOREIGN = (
    (re.compile(r"""^["'](.+?)["'] is a required property"""), "the key {0!r} is missing"),
    (
        re.compile(r"""^Additional properties are not allowed \(["'](.+?)["'] (?:was|were)"""),
        "the key {0!r} has no meaning here",
    ),
    (
        re.compile(r"""^["'](.+?)["'] (?:does|do) not match any of the regexes"""),
        "the key {0!r} has no meaning here",
    ),
)


def _translate(message: str) -> str:
    """The validator's words in ours, where they are about keys: it has several back ends that word them each
    in its own way."""
    for pattern, text in _FOREIGN:
        match = pattern.match(message)
        if match:
            return text.format(*match.groups())
    return _shorten(message)


def _shorten(message: str) -> str:
    line = message.strip().splitlines()[0] if message.strip() else "invalid"
    return line if len(line) <= 200 else line[:197] + "..."


def _validator_version() -> bytes:
    from importlib.metadata import version

    return f"{version('openapi-spec-validator')} {_WORDING}".encode()


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kubewright" / "openapi"


def _read_verdict(path: Path) -> list[GateFault] | None:
    try:
        entries: Any = json.loads(path.read_bytes())
        return [GateFault(pointer, message) for pointer, message in entries]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _write_verdict(path: Path, faults: list[GateFault]) -> None:
    """Writes a verdict, if that is possible: without it the next run judges again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps([[fault.pointer, fault.message] for fault in faults]))
        temporary.replace(path)
    except OSError:
        return
