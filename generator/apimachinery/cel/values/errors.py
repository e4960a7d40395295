"""The exceptions of this package: one for an expression that does not compile, two for one that fails to run.

Compile errors are worded and laid out as cel-go does, because users meet these texts in kube-apiserver's
answers: ``ERROR: <input>:1:6: undeclared reference to 'x' (in container '')``, the source line, a caret.
"""

from __future__ import annotations

from dataclasses import dataclass

SNIPPET_LIMIT = 10_000
"""Source lines longer than this are not shown below an error."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem in a source: ``line`` from 1, ``column`` from 0 (shown from 1), and what is wrong."""

    line: int
    column: int
    message: str


class CelError(Exception):
    """What all exceptions of this package are."""


class CompileError(CelError):
    """An expression that does not parse or type-check. ``issues`` are sorted by place."""

    def __init__(self, issues: list[Issue], source: str, description: str = "<input>"):
        self.issues = issues
        self.source = source
        self.description = description
        super().__init__(self.text())

    def text(self) -> str:
        """The whole report, one block an issue."""
        lines = self.source.split("\n")
        return "\n".join(_block(issue, lines, self.description) for issue in self.issues)


class EvalError(CelError):
    """A failed evaluation; its text is what cel-go says, such as ``no such key: x``."""


class CostLimitError(EvalError):
    """The evaluation was stopped because it cost more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def _block(issue: Issue, lines: list[str], description: str) -> str:
    text = f"ERROR: {description}:{issue.line}:{issue.column + 1}: {issue.message}"
    if not 0 < issue.line <= len(lines):
        return text
    line = lines[issue.line - 1].replace("\t", " ")
    if not line or len(line.encode("utf-8", "surrogatepass")) > SNIPPET_LIMIT:
        return text
    # A wide character takes a wide dot, so that the caret stays below its column in most fonts.
    lead = "".join("." if ord(char) < 0x80 else "．" for char in line[: issue.column])
    if issue.column > len(line):
        lead += "." * (issue.column - len(line))
    at_wide = issue.column < len(line) and ord(line[issue.column]) >= 0x80
    return f"{text}\n | {line}\n | {lead}{'＾' if at_wide else '^'}"
