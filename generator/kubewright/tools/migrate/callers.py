"""Who still calls API versions that are deprecated, or that a release does not have: from a server's metrics, which say
what is called, and from its audit logs, which say by whom.

A metric knows nothing of users, and counts since the server started; a log knows them, as far back as it goes, where
its policy kept the requests (level Metadata is enough). An event counts where the server marked it
(``k8s.io/deprecated``), or where the release that is asked about deprecates or lacks what it asks for.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kubewright.ir.versions import join_api_version
from kubewright.source.lifecycle import Key, LifeCycle, release_of
from kubewright.tools.migrate.stored import StoredKind

Asked = tuple[str, str, str, str]
"""Group, version, resource, subresource."""
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([0-9eE+.-]+)\Z")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?')


@dataclass(slots=True)
class Caller:
    """What one user sent with one program."""

    verbs: Counter[str] = field(default_factory=Counter)
    last: str = ""


@dataclass(slots=True)
class Called:
    """One deprecated API, and its callers by (user, user agent)."""

    asked: Asked
    removed: str = ""
    verbs: Counter[str] = field(default_factory=Counter)
    callers: dict[tuple[str, str], Caller] = field(default_factory=dict)


@dataclass(slots=True)
class Events:
    """What was read of logs."""

    read: int = 0
    unreadable: int = 0
    first: str = ""
    last: str = ""


class Callers:
    """Collects. ``release`` is the one to run on."""

    def __init__(
        self, release: str, lifecycles: Mapping[Key, LifeCycle], plurals: Mapping[tuple[str, str], str]
    ) -> None:
        self._release = release_of(release)
        self._lifecycles, self._plurals = lifecycles, plurals
        self.called: dict[Asked, Called] = {}
        self.events = Events()
        self.stored: list[StoredKind] = []

    def life_cycle(self, asked: Asked) -> LifeCycle:
        """What is known of an API; empty where nothing is."""
        group, version, resource, _ = asked
        kind = self._plurals.get((group, resource), "")
        return self._lifecycles.get((join_api_version(group, version), kind), LifeCycle())

    def _is_old(self, asked: Asked) -> bool:
        life = self.life_cycle(asked)
        return any(text and release_of(text) <= self._release for text in (life.deprecated, life.removed))

    def _of(self, asked: Asked) -> Called:
        return self.called.setdefault(asked, Called(asked, self.life_cycle(asked).removed))

    def add_metrics(self, text: str) -> None:
        """Takes what /metrics says."""
        marked: dict[Asked, str] = {}
        totals: dict[Asked, Counter[str]] = {}
        for name, labels, value in samples(text):
            if name not in ("apiserver_requested_deprecated_apis", "apiserver_request_total"):
                continue
            asked = tuple(labels.get(label, "") for label in ("group", "version", "resource", "subresource"))
            assert len(asked) == 4
            if name == "apiserver_requested_deprecated_apis":
                if value:
                    marked[asked] = labels.get("removed_release", "")
            elif labels.get("resource"):
                totals.setdefault(asked, Counter())[labels.get("verb", "").lower()] += int(value)
        for asked in [*marked, *(asked for asked in totals if asked not in marked and self._is_old(asked))]:
            called = self._of(asked)
            called.removed = marked.get(asked) or called.removed
            called.verbs.update(totals.get(asked, {}))

    def add_log(self, path: Path) -> None:
        """Takes the events of an audit log (a file, also one that is compressed, or a folder of them). Raises OSError,
        EOFError for a compressed file that is cut."""
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.is_file())
        for file in files:
            with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
                for line in lines:
                    self.add_event(line)

    def add_event(self, line: bytes) -> None:
        """Takes a line of a log."""
        if not line.strip():
            return
        try:
            event = msgspec.json.decode(line)
            complete = event["stage"] == "ResponseComplete"
            ref = event.get("objectRef") or {}
            said: dict[str, str] = event.get("annotations") or {}
            user = (event.get("impersonatedUser") or event.get("user") or {}).get("username") or ""
            when = event.get("requestReceivedTimestamp") or ""
            agent, verb = event.get("userAgent") or "", event["verb"]
            asked = tuple(ref.get(key) or "" for key in ("apiGroup", "apiVersion", "resource", "subresource"))
        except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
            self.events.unreadable += 1
            return
        if not complete:
            return
        self.events.read += 1
        self.events.first = min(self.events.first or when, when)
        self.events.last = max(self.events.last, when)
        assert len(asked) == 4
        if said.get("k8s.io/deprecated") != "true" and not (asked[2] and self._is_old(asked)):
            return
        called = self._of(asked)
        called.removed = said.get("k8s.io/removed-release") or called.removed
        caller = called.callers.setdefault((user, agent), Caller())
        caller.verbs[verb] += 1
        caller.last = max(caller.last, when)

    def in_order(self) -> list[Called]:
        """What was found: what is removed soonest first."""

        def place(called: Called) -> tuple[Any, ...]:
            return (release_of(called.removed) if called.removed else (999,), called.asked)

        return sorted(self.called.values(), key=place)

    # How it is shown.

    def text(self) -> str:
        """For people."""
        lines: list[str] = []
        for called in self.in_order():
            lines.append(f"{shown(called.asked)}: {self._fate(called)}")
            if called.verbs:
                lines.append(f"  {_counts(called.verbs)} since the server started, by its metrics")
            for (user, agent), caller in sorted(
                called.callers.items(), key=lambda item: (-item[1].verbs.total(), item[0])
            ):
                lines.append(
                    f"  {user or '(nobody)'} with {agent or '(no name)'}: {_counts(caller.verbs)}, last {caller.last}"
                )
        if self.stored:
            lines += [kind.text() for kind in self.stored]
            lines.append("  kubewright migrate --from-cluster --write writes them again")
        return "".join(f"{_printable(line)}\n" for line in lines)

    def json(self) -> str:
        """For programs."""
        document = {
            "apis": [
                {
                    "apiVersion": join_api_version(called.asked[0], called.asked[1]),
                    "resource": called.asked[2],
                    "subresource": called.asked[3],
                    "deprecatedIn": self.life_cycle(called.asked).deprecated,
                    "removedIn": called.removed,
                    "replacement": self.life_cycle(called.asked).replacement,
                    "requests": dict(sorted(called.verbs.items())),
                    "callers": [
                        {
                            "user": user,
                            "userAgent": agent,
                            "requests": dict(sorted(caller.verbs.items())),
                            "last": caller.last,
                        }
                        for (user, agent), caller in sorted(called.callers.items())
                    ],
                }
                for called in self.in_order()
            ],
            "stored": [
                {"definition": kind.name, "versions": [*kind.old], "storage": kind.storage} for kind in self.stored
            ],
            "events": {"read": self.events.read, "unreadable": self.events.unreadable,
                       "first": self.events.first, "last": self.events.last},
        }  # fmt: skip
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"

    def _fate(self, called: Called) -> str:
        life = self.life_cycle(called.asked)
        parts = [f"deprecated in {life.deprecated}" if life.deprecated else "deprecated"]
        if called.removed:
            parts.append(f"removed in {called.removed}")
        if life.replacement:
            parts.append(f"use {life.replacement}")
        return ", ".join(parts)


def shown(asked: Asked) -> str:
    """An API in words: ``apps/v1 deployments/scale``."""
    group, version, resource, subresource = asked
    return f"{join_api_version(group, version)} {resource}{'/' + subresource if subresource else ''}"


def _counts(verbs: Mapping[str, int]) -> str:
    total = sum(verbs.values())
    each = ", ".join(
        f"{verb} {number}" for verb, number in sorted(verbs.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return f"{total} request{'' if total == 1 else 's'} ({each})"


def _printable(text: str) -> str:
    """What clients call themselves must not move the cursor of a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """The samples of a text in the Prometheus format; what is none is passed over."""
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None or line.startswith("#"):
            continue
        labels = {name: _unquoted(value) for name, value in _LABEL.findall(match[2] or "")}
        try:
            yield match[1], labels, float(match[3])
        except ValueError:
            continue


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), text)
