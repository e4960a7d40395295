"""``kubewright migrate``: finds API versions that a release deprecates or does not have, and rewrites manifests.

Exit codes: 0 nothing of it is in the manifests (any more), 1 something does, 2 the command line or the input
cannot be used.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from apimachinery.conversion.versions import Converter
from kubewright.diagnostics import Diagnostic, Diagnostics, Severity, printable
from kubewright.source.kubernetes_validate import NEWEST
from kubewright.source.lifecycle import read_lifecycles, read_plurals, release_of
from kubewright.tools.migrate.aftermath import Refusals, patches_of
from kubewright.tools.migrate.callers import Callers
from kubewright.tools.migrate.conversions import HooksError, converter_of, tables_of_crds
from kubewright.tools.migrate.custom import CustomKinds, read_custom
from kubewright.tools.migrate.judge import CODES, Judge, Migration
from kubewright.tools.migrate.stored import stored_kinds, write_again
from kubewright.tools.outputs import reporting
from kubewright.tools.validate.inputs import STDIN, Chunk, read_chunks

if TYPE_CHECKING:
    from apimachinery.client.connection import Client

CLEAN, FOUND, MISUSED = 0, 1, 2
_REWRITTEN = frozenset({"M001", "M002", "M005"})


def run(options: argparse.Namespace) -> int:
    """Judges all documents named; with ``--write`` also rewrites those that change."""
    try:
        is_known = release_of(options.kubernetes) <= release_of(NEWEST)
    except ValueError:
        print(
            f"kubewright migrate: {options.kubernetes!r} is no release; use a form such as 1.37",
            file=sys.stderr,
        )
        return MISUSED
    if not is_known:
        print(
            f"kubewright migrate: note: what releases after {NEWEST} remove is not all known yet",
            file=sys.stderr,
        )
    if options.from_cluster or options.audit_log:
        return _callers(options)
    if not options.paths:
        print("kubewright migrate: give manifests, or --from-cluster", file=sys.stderr)
        return MISUSED
    diagnostics = Diagnostics()
    chunks = read_chunks(options.paths, diagnostics, options.exclude)
    judge = _judge(options, chunks, diagnostics) if not diagnostics.has_errors else None
    if diagnostics.has_errors:
        reporting.report_unusable(diagnostics, options.format)
    if judge is None:
        return MISUSED
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


def _judge(options: argparse.Namespace, chunks: list[Chunk], diagnostics: Diagnostics) -> Judge | None:
    """What judges the documents; nothing, after it said or added why, where there is none."""
    if options.rules is not None and not options.crds:
        print("kubewright migrate: --rules needs --crds, the definitions of its kinds", file=sys.stderr)
        return None
    custom = read_custom(options.crds, options.rules, diagnostics) if options.crds else CustomKinds()
    tables = tables_of_crds(options.crds, options.rules, diagnostics, options.modules) if options.crds else []
    if diagnostics.has_errors:
        return None
    try:
        converter = converter_of(options.package, tables) or (Converter(tables) if tables else None)
    except HooksError as fault:
        print(printable(f"kubewright migrate: {fault}"), file=sys.stderr)
        return None
    if converter is None:
        print(
            f"kubewright migrate: no package {options.package!r}; nothing can be rewritten", file=sys.stderr
        )
        if options.write:
            return None
    return Judge(
        options.kubernetes,
        {**custom.lives, **read_lifecycles()},
        converter,
        {**custom.plurals, **read_plurals()},
        patches_of(chunks),
        unknown=custom.unknown,
        refusals=Refusals(options.kubernetes, options.package, tuple(options.crds)).of,
    )


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
    misused = ""
    if options.paths or options.format not in ("text", "json"):
        misused = "with --from-cluster and --audit-log there are no manifests, and the formats text and json"
    elif options.write and not options.from_cluster:
        misused = "--write needs manifests, or --from-cluster, whose stored objects are written again"
    if misused:
        print(f"kubewright migrate: {misused}", file=sys.stderr)
        return MISUSED
    callers = Callers(options.kubernetes, read_lifecycles(), read_plurals())
    try:
        if options.from_cluster:
            with _cluster(options) as client:
                if options.write:
                    return _write_again(client, options.quiet)
                callers.add_metrics(_metrics(client))
                callers.stored = stored_kinds(client)
        for path in options.audit_log:
            callers.add_log(path)
    except (OSError, EOFError, ValueError) as fault:
        print(printable(f"kubewright migrate: {fault}"), file=sys.stderr)
        return MISUSED
    sys.stdout.write(callers.json() if options.format == "json" else callers.text())
    if not options.quiet:
        print(_summary(callers), file=sys.stderr)
    return FOUND if callers.called or callers.stored else CLEAN


def _summary(callers: Callers) -> str:
    events = callers.events
    text = f"{len(callers.called)} deprecated API{'' if len(callers.called) == 1 else 's'} called"
    if events.read:
        text += f"; {events.read} events from {events.first} to {events.last}"
    if events.unreadable:
        text += f"; {events.unreadable} lines are no audit events"
    return text


@contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the cluster. Raises ValueError, which says what cannot be done there."""
    from apimachinery.client.config import Config, ConfigError
    from apimachinery.client.connection import Client
    from apimachinery.client.errors import ApiError, TransportError

    try:
        with Client(Config.load(options.kubeconfig, context=options.context)) as client:
            yield client
    except (ApiError, TransportError, ConfigError) as fault:
        raise ValueError(f"the cluster cannot be read: {fault}") from None


def _metrics(client: Client) -> str:
    """The metrics of a cluster. Raises ApiError, TransportError."""
    from apimachinery.client.calls import Call
    from apimachinery.client.endpoint import Request

    call = Call(Request("GET", "/metrics"), lambda data: data.decode("utf-8", "replace"), repeatable=True)
    return client.run(call)


def _write_again(client: Client, quiet: bool) -> int:
    """Writes the stored objects of a cluster again, where they may be stored at a version that is not the storage
    version. Raises ApiError, TransportError."""
    kinds = stored_kinds(client)
    for kind in kinds:
        count = write_again(client, kind)
        print(f"{kind.name}: {count} object{'' if count == 1 else 's'} stored as {kind.storage}")
    if not kinds and not quiet:
        print("every object of a custom kind is stored as its storage version", file=sys.stderr)
    return CLEAN


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
