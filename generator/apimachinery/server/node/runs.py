"""The command of a container as it runs: a line of the small shell, whose sleeps pass with the node's clock.

A command that the shell does not know is an image's own, of which nobody here knows what it does: it cannot be
simulated, and its container runs on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

from apimachinery.server.node.commands import Command, CommandInput, Pod
from apimachinery.server.node.shell import ContainerShell, ShellOutput, Unknown

FOREVER = float("inf")
MOST_OUTPUT = 1 << 20
"""What is kept of what a container said."""
QUICK_STEPS, SLOW_SECONDS = 100, 10.0
"""A command that goes on after so many steps, such as ``while true; do sleep 1; done``, is looked at so seldom."""
MOST_STEPS = 1000
"""At one look: what a clock that moved by a month leaves behind is not made up for."""


class OpenInput(CommandInput):
    """The stdin of a container to which nobody is attached."""

    def __iter__(self) -> Iterator[bytes]:
        """Raises Unknown: who sends something, and when, is not known."""
        raise Unknown("stdin")


class CommandRun:
    """One run of a container's command."""

    def __init__(self, shell: ContainerShell, command: Command) -> None:
        """Begins a command. Raises Unknown where its first program cannot be simulated."""
        self._shell, self._command = shell, command
        self._line = ShellOutput()
        self._steps: Generator[float, None, int] = shell.steps(command, self._line)
        self._next = 0.0
        self._made = 0
        self.has_ended = False
        self.exit_code = 0
        self.go_on(0.0)

    @property
    def output(self) -> bytes:
        """What it said so far, on both channels."""
        return bytes(self._line.said[-MOST_OUTPUT:])

    def go_on(self, seconds: float) -> float:
        """Goes on to so many seconds after its beginning; seconds until the next step."""
        most = self._made + MOST_STEPS
        while not self.has_ended and self._next <= seconds:
            self._made += 1
            if self._made > most:
                self._next = seconds + SLOW_SECONDS
                break
            try:
                self._next += next(self._steps)
            except StopIteration as end:
                self.has_ended, self.exit_code = True, end.value
            except Unknown:
                if not self._line.began:
                    raise
                self._next = FOREVER  # an image's own program from here on
        return max(self._next - seconds, SLOW_SECONDS if self._made > QUICK_STEPS else 0.0)

    def take(self, path: str) -> str:
        """Takes a file away; empty where there is none."""
        return self._shell.of(self._command.pod).pop(path, b"").decode("utf-8", "replace")


def ask(
    shell: ContainerShell, pod: Pod, container: str, argv: Sequence[str], variables: Mapping[str, str]
) -> int | None:
    """How a command in a container ends, without a wait; None where that cannot be known."""
    command = Command(pod, container, tuple(argv), variables=variables)
    command.input.end()
    try:
        next(steps := shell.steps(command, ShellOutput()))
    except StopIteration as end:
        return int(end.value)
    except Unknown:
        return None
    steps.close()
    return None


def begin(
    shell: ContainerShell,
    pod: Pod,
    container: str,
    argv: Sequence[str],
    variables: Mapping[str, str],
    *,
    reads: bool = False,
) -> CommandRun | None:
    """Begins a command; None where it cannot be simulated, or reads a stdin that is open (``reads``)."""
    given = OpenInput() if reads else CommandInput()
    given.end()
    try:
        return CommandRun(shell, Command(pod, container, tuple(argv), given, variables=variables))
    except Unknown:
        return None
