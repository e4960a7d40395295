"""Problems in a spec are data: collected over a whole run, sorted, printed once.

Exceptions are for bugs of ours. A stage that meets a problem in its input adds a ``Diagnostic`` to the
``Diagnostics`` it was given and goes on with whatever still makes sense.
Codes are stable and never reused; docs/diagnostics.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from kubewright.location import Location


class Severity(Enum):
    """How much a diagnostic weighs: an ``ERROR`` stops the run before anything is written."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class NamedObject:
    """The object that a problem is of. In an API description that is a kind, whose name is its resource and version
    (``widgets.example.com/v1``). ``source`` is the template that Helm made an object from."""

    kind: str
    namespace: str = ""
    name: str = ""
    source: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        text = f"{self.kind} {name}".strip()
        return f"{text} ({self.source})" if self.source else text


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: where, what, and what to do next (``hint`` may be empty); ``subject`` where it is of an object."""

    code: str
    severity: Severity
    message: str
    location: Location
    hint: str = ""
    subject: NamedObject | None = None

    @property
    def text(self) -> str:
        """The message with its object in front, unless it begins with the object's name."""
        if self.subject is None or not str(self.subject):
            return self.message
        begins = bool(self.subject.name) and self.message.startswith(f"{self.subject.name}:")
        return self.message if begins else f"{self.subject}: {self.message}"

    def __str__(self) -> str:
        head = printable(f"{self.location}: {self.severity.value} {self.code}: {self.text}")
        return f"{head}\n  hint: {printable(self.hint)}" if self.hint else head


# Control characters of ASCII and Latin-1, line and paragraph separators, marks of the reading direction (Bidi_Control).
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """``text`` with its control characters, but for line breaks, written as escapes of Python."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(text: str) -> str:
    """Text that holds parts of an input, for a terminal or a log: control characters are written as escapes, and
    every line but the first is behind a bar. So an input can neither steer a terminal nor begin a line, which
    build servers may take for a command."""
    return escaped(text).replace("\n", "\n  | ")


@dataclass(slots=True)
class Diagnostics:
    """The problems of one run. Iterates in order of place, then code; equal ones count once. Errors of the codes in
    ``lenient`` count as warnings: whoever finds them goes on with the best reading there is."""

    _items: dict[Diagnostic, None] = field(default_factory=dict)
    lenient: frozenset[str] = frozenset()

    def add(self, diagnostic: Diagnostic) -> None:
        """Adds one that was made elsewhere."""
        self._items[diagnostic] = None

    def error(self, code: str, message: str, location: Location, hint: str = "") -> None:
        """Adds an error; a warning where ``code`` is one of ``lenient``."""
        severity = Severity.WARNING if code in self.lenient else Severity.ERROR
        self._items[Diagnostic(code, severity, message, location, hint)] = None

    def warning(self, code: str, message: str, location: Location, hint: str = "") -> None:
        """Adds a warning."""
        self._items[Diagnostic(code, Severity.WARNING, message, location, hint)] = None

    def note(self, code: str, message: str, location: Location, hint: str = "") -> None:
        """Adds a note."""
        self._items[Diagnostic(code, Severity.NOTE, message, location, hint)] = None

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(sorted(self._items, key=lambda d: (d.location, d.code, d.message)))

    def __len__(self) -> int:
        return len(self._items)

    @property
    def has_errors(self) -> bool:
        """Whether the run must stop before writing."""
        return any(d.severity is Severity.ERROR for d in self._items)
