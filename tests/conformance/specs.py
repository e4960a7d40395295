"""Kubernetes' conformance specs as ``specs.yaml`` lists them: each with its state, and why where it does not pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("specs.yaml")
PASSES, FAILS, OUT_OF_REACH, NOT_RUN = "passes", "fails", "out of reach", "not run"
SERVE = "--controllers all,workloads,node --enable-admission-plugins ServiceAccount"
"""What the specs run against."""
STATES = (PASSES, FAILS, OUT_OF_REACH, NOT_RUN)
_HEAD = """\
# Kubernetes' conformance specs with what came of them here; `make conformance` writes the states, and from this file
# docs/conformance.md. A spec is `passes`, `not run`, or has its reason: `fails: TEXT`, or `out of reach: NAME` of one.
"""


@dataclass(frozen=True, slots=True)
class Spec:
    """``reason`` is the name of one of the reasons of a spec that is out of reach, the text of one that fails."""

    name: str
    state: str
    reason: str = ""

    @property
    def group(self) -> str:
        """The special interest group of Kubernetes that it is of."""
        return self.name.split("]")[0].removeprefix("[sig-")


@dataclass(frozen=True, slots=True)
class Conformance:
    """What the file says."""

    release: str
    reasons: Mapping[str, str]
    specs: tuple[Spec, ...]


def load() -> Conformance:
    """Reads the file. Raises ValueError for a state or a reason that is none."""
    given = yaml.safe_load(FILE.read_text())
    reasons = given["reasons"]
    specs = tuple(_read(name, entry) for name, entry in given["specs"].items())
    for spec in specs:
        if spec.state not in STATES or (spec.state == OUT_OF_REACH and spec.reason not in reasons):
            raise ValueError(f"{FILE.name}: {spec.name}: {spec.state} {spec.reason}")
    return Conformance(given["release"], reasons, specs)


def _read(name: str, entry: Any) -> Spec:
    if isinstance(entry, str):
        return Spec(name, entry)
    ((state, reason),) = entry.items()
    return Spec(name, state, reason)


def save(found: Conformance) -> None:
    """Writes the file."""
    specs = {
        spec.name: {spec.state: spec.reason} if spec.reason else spec.state
        for spec in sorted(found.specs, key=lambda spec: spec.name)
    }
    given = {"release": found.release, "reasons": dict(found.reasons), "specs": specs}
    FILE.write_text(_HEAD + yaml.safe_dump(given, sort_keys=False, width=1000, allow_unicode=True))


def updated(found: Conformance, results: Mapping[str, str]) -> Conformance:
    """With the results of a run: the message of each spec that failed, empty for those that passed. What is out of
    reach stays so until it passes, and the text of a failure until there is another state."""

    def changed(spec: Spec) -> Spec:
        message = results.get(spec.name)
        if message is None or (message and spec.state in (OUT_OF_REACH, FAILS)):
            return spec
        return Spec(spec.name, FAILS, message) if message else Spec(spec.name, PASSES)

    return Conformance(found.release, found.reasons, tuple(changed(spec) for spec in found.specs))


def with_names(found: Conformance, names: list[str]) -> Conformance:
    """With the specs of a suite: those that it has not any more are dropped, new ones were not run."""
    known = {spec.name: spec for spec in found.specs}
    specs = tuple(known.get(name, Spec(name, NOT_RUN)) for name in names)
    return Conformance(found.release, found.reasons, specs)
