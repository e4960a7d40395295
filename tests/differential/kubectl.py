"""Command lines of kubectl in a conversation: given to each of two servers, and what they print in placeholders.

An answer is one like those of requests, so that it is compared and classified alike: the exit code is the ``status``,
what is printed is the body, and what is printed to standard error is its ``message``, which is text for people.
Ages, times, random names and addresses become placeholders; of ``explain`` only what is no prose is compared.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.differential.connection import Server

SECONDS = 40
"""The most that a command may take."""
_RULES = [
    (re.compile(pattern, re.MULTILINE), placeholder)
    for pattern, placeholder in (
        (r"^[IWEF]\d{4} [\d:.]+ +\d+ ([\w.-]+):\d+\]", r"<log \1>"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d [\d:]{8} [+-]\d{4}", "<date>"),
        (r"20\d\d-\d\d-\d\d[ T][\d:]{8}(\.\d+)?( ?[+-]\d{2}:?\d{2}|Z)?", "<date>"),
        (r"(?<![\w.-])(\d{1,3}s|\d{1,2}m\d{0,2}s?|<invalid>)(?![\w.-])", "<age>"),
        (r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "<address>"),
        (r"\b3[0-2]\d{3}(?=[/,\s]|$)", "<port>"),
        (r"\b(LIVE-|MERGED-|kubectl-edit-|kubectl_replace_|debugger-)\w+", r"\1<random>"),
        (r"(\"?resourceVersion\"?: +\"?|Resource Version: +)\d+", r"\1<version>"),
        (r"(?<=\S)[ \t]+", " "),
        (r'("serverAddress":")[^"]*', r"\1<address>"),
        (r"^WARNING: version difference.*\n?", ""),
    )
]
_EXPLAINED = re.compile(r"[A-Z]+:|\s+[\w$.-]+\t?\s*<|error|Error|\s+enum:")


class Kubectl:
    """kubectl with a home of its own, in front of one server and in one namespace."""

    def __init__(self, binaries: Sequence[str], server: Server, namespace: str) -> None:
        self._binaries = binaries
        self._address = server.url.geturl()
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [
                {"name": "it", "cluster": {"server": self._address, "insecure-skip-tls-verify": True}}
            ],
            "users": [{"name": "it", "user": {"token": server.tokens["admin"]}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": namespace}}],
        }
        (folder / "config").write_text(json.dumps(config))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "KUBECONFIG": str(folder / "config"),
            "LC_ALL": "C",
            "TZ": "UTC",
        }

    def __enter__(self) -> Kubectl:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def run(self, step: dict[str, Any]) -> dict[str, Any]:
        """What a command printed, as an answer."""
        arguments = shlex.split(step["kubectl"])
        environment = {**self._environment, **step.get("env", {})}
        binary = self._binaries[step.get("version", 0) % len(self._binaries)]
        try:
            # Called "kubectl" whatever its file is called: managers of fields are named after it.
            done = subprocess.run(
                ["kubectl", *arguments], executable=binary, input=step.get("stdin", ""), env=environment,
                cwd=self._folder.name, text=True, capture_output=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"status": "no end", "headers": {}, "body": {}}
        printed = self._plain(done.stdout).splitlines()
        if arguments[:1] == ["explain"]:
            printed = [line for line in printed if _EXPLAINED.match(line)]
        body = {"stdout": printed, "message": self._plain(done.stderr)}
        return {"status": done.returncode, "headers": {}, "body": body}

    def _plain(self, text: str) -> str:
        text = text.replace(self._folder.name, "<home>").replace(self._address, "<server>")
        text = text.replace(self._address.partition("//")[2], "<host>")
        for pattern, placeholder in _RULES:
            text = pattern.sub(placeholder, text)
        return text


def binaries(given: Iterable[str]) -> list[str]:
    """Those that are there; a missing one ends the run before it begins. Raises SystemExit."""
    found = [str(each) for each in given]
    for each in found:
        if not Path(each).is_file():
            raise SystemExit(f"{each}: no such kubectl")
    return found
