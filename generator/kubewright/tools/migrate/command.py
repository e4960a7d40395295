"""``kubewright migrate``: finds API versions that a release deprecates or does not have, and rewrites manifests.

Exit codes: 0 nothing of it is in the manifests (any more), 1 something does, 2 the command line or the input
cannot be used.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from kubewright.diagnostics import Diagnostic, Diagnostics, Severity, printable
from kubewright.source.lifecycle import read_lifecycles, read_plurals, release_of
from kubewright.tools.migrate.aftermath import Refusals, patches_of
from kubewright.tools.migrate.callers import Callers
from kubewright.tools.migrate.conversions import HooksError, converter_of
from kubewright.tools.migrate.judge import CODES, Judge, Migration
from kubewright.tools.outputs import reporting
from kubewright.tools.validate.inputs import STDIN, Chunk, read_chunks

CLEAN, FOUND, MISUSED = 0, 1, 2
_REWRITTEN = frozenset({"M001", "M002", "M005"})


def run(options: argparse.Namespace) -> int:
    """Judges all documents named; with ``--write`` also rewrites those that change."""
    try:
        release_of(options.kubernetes)
    except ValueError:
        print(
            f"kubewright migrate: {options.kubernetes!r} is no release; use a form such as 1.37",
            file=sys.stderr,
        )
        return MISUSED
    if options.from_cluster or options.audit_log:
        return _callers(options)
    if not options.paths:
        print("kubewright migrate: give manifests, or --from-cluster", file=sys.stderr)
        return MISUSED
    diagnostics = Diagnostics()
    chunks = read_chunks(options.paths, diagnostics, options.exclude)
    if diagnostics.has_errors:
        reporting.report_unusable(diagnostics, options.format)
        return MISUSED
    try:
        converter = converter_of(options.package)
    except HooksError as fault:
        print(printable(f"kubewright migrate: {fault}"), file=sys.stderr)
        return MISUSED
    if converter is None:
        print(
            f"kubewright migrate: no package {options.package!r}; nothing can be rewritten", file=sys.stderr
        )
        if options.write:
            return MISUSED
    judge = Judge(
        options.kubernetes,
        read_lifecycles(),
        converter,
        read_plurals(),
        patches_of(chunks),
        Refusals(options.kubernetes, options.package).of,
    )
    progress = reporting.progress(len(chunks), quiet=options.quiet)
    judged: list[Migration] = []
    before: dict[str, str] = {}
    for chunk in chunks:
        judged.append(judge.document(chunk, before.get(chunk.file, "")))
        if b"{{" in chunk.content:
            before[chunk.file] = before.get(chunk.file, "") + chunk.content.decode("utf-8", "replace")
        progress(len(judged))
    progress.clear()
    changed = sum(each.text is not None for each in judged)
    if options.write:
        _write(options.paths, chunks, judged)
    findings = [finding for each in judged for finding in each.findings]
    left = [f for f in findings if not (options.write and f.code in _REWRITTEN)]
    out = sys.stderr if options.write and "-" in options.paths else sys.stdout
    out.write(reporting.FORMATS[options.format](left, CODES))
    if not options.quiet:
        print(_outcome(options, len(findings) - len(left), left, (changed, len(chunks))), file=sys.stderr)
    return FOUND if any(f.severity is not Severity.NOTE for f in left) else CLEAN


def _outcome(
    options: argparse.Namespace, fixed: int, left: list[Diagnostic], documents: tuple[int, int]
) -> str:
    changed, number = documents
    if not options.write:
        return f"{reporting.count(left)}; {changed} of {number} documents can be rewritten by --write"
    return f"{fixed} fixed in {changed} of {number} documents, {len(left)} left" + (
        f": {reporting.count(left)}" if left else ""
    )


def _callers(options: argparse.Namespace) -> int:
    """Says who calls what."""
    if options.paths or options.write or options.format not in ("text", "json"):
        print(
            "kubewright migrate: with --from-cluster and --audit-log there are no manifests, no --write, "
            "and the formats text and json",
            file=sys.stderr,
        )
        return MISUSED
    callers = Callers(options.kubernetes, read_lifecycles(), read_plurals())
    try:
        if options.from_cluster:
            callers.add_metrics(_metrics(options))
        for path in options.audit_log:
            callers.add_log(path)
    except (OSError, EOFError, ValueError) as fault:
        print(printable(f"kubewright migrate: {fault}"), file=sys.stderr)
        return MISUSED
    sys.stdout.write(callers.json() if options.format == "json" else callers.text())
    if not options.quiet:
        print(_summary(callers), file=sys.stderr)
    return FOUND if callers.called else CLEAN


def _summary(callers: Callers) -> str:
    events = callers.events
    text = f"{len(callers.called)} deprecated API{'' if len(callers.called) == 1 else 's'} called"
    if events.read:
        text += f"; {events.read} events from {events.first} to {events.last}"
    if events.unreadable:
        text += f"; {events.unreadable} lines are no audit events"
    return text


def _metrics(options: argparse.Namespace) -> str:
    """The metrics of a cluster. Raises ValueError, which says why there are none."""
    from apimachinery.client.calls import Call
    from apimachinery.client.config import Config, ConfigError
    from apimachinery.client.connection import Client
    from apimachinery.client.errors import ApiError, TransportError
    from apimachinery.client.transport import Request

    try:
        with Client(Config.load(options.kubeconfig, context=options.context)) as client:
            call = Call(
                Request("GET", "/metrics"), lambda data: data.decode("utf-8", "replace"), repeatable=True
            )
            return client.run(call)
    except (ApiError, TransportError, ConfigError) as fault:
        raise ValueError(f"the metrics of the cluster cannot be read: {fault}") from None


def _write(paths: list[str], chunks: list[Chunk], judged: list[Migration]) -> None:
    """Replaces the documents that change, in their files; what is between documents stays."""
    files: dict[str, list[tuple[Chunk, Migration]]] = {}
    for chunk, each in zip(chunks, judged, strict=True):
        files.setdefault(chunk.file, []).append((chunk, each))
    for name, documents in files.items():
        if name == STDIN:
            sys.stdout.write("---\n".join(_said(chunk, each) for chunk, each in documents))
        elif any(each.text is not None for _, each in documents):
            _replace(Path(name), _rewritten(Path(name).read_bytes(), documents))


def _rewritten(content: bytes, documents: list[tuple[Chunk, Migration]]) -> bytes:
    """The content of a file with its documents that change; they are in the file's order."""
    pieces: list[bytes] = []
    done = line = place = 0
    for chunk, each in documents:
        for _ in range(chunk.line - line):
            place = content.index(b"\n", place) + 1
        line = chunk.line
        if each.text is not None:
            start = content.index(chunk.content, place)
            pieces += [content[done:start], each.text.encode()]
            done = start + len(chunk.content)
    return b"".join([*pieces, content[done:]])


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file whole: who reads it meanwhile sees the old or the new one."""
    path = path.resolve()
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
        temporary = Path(stream.name)
        try:
            stream.write(content)
            stream.flush()
            shutil.copymode(path, temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _said(chunk: Chunk, each: Migration) -> str:
    text = each.text if each.text is not None else chunk.content.decode("utf-8-sig")
    return text if text.endswith("\n") else text + "\n"
