"""Known faults of upstream specs: fixed, and reported when they are gone; and faults of any OpenAPI document."""

from __future__ import annotations

from kubewright.diagnostics import Diagnostics, Severity
from kubewright.ir.types import Json
from kubewright.location import Document
from kubewright.processes import usable_processes


def fix(document: Document, definitions: Json, release: str, diagnostics: Diagnostics) -> None:
    """Takes the known faults of a Kubernetes release out of its definitions."""
    from kubewright.fixups import MENDS

    for mend in MENDS:
        if any(release.removeprefix("v").startswith(r) for r in mend.releases) and not mend.mend(definitions):
            _report_expired(mend.name, document, diagnostics)


def _report_expired(name: str, document: Document, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "K604",
        f"the fixup {name!r} has nothing to do here any more",
        document.at(""),
        "the spec was fixed: remove the fixup",
    )


def judge(documents: list[Document], diagnostics: Diagnostics, jobs: int) -> None:
    """Reports what openapi-spec-validator has against the structure of ``documents``, except for what has been
    reported already, in better words and at the same place."""
    from kubewright.source.gate import find_faults

    values = [document.value for document in documents]
    if len(values) > 2 and usable_processes(jobs) > 1:
        from concurrent.futures import ProcessPoolExecutor  # most runs judge no document

        with ProcessPoolExecutor(max_workers=jobs) as pool:
            verdicts = list(pool.map(find_faults, values, chunksize=4))
    else:
        verdicts = [find_faults(value) for value in values]
    reported: dict[str, list[str]] = {}
    for item in diagnostics:
        if item.severity is Severity.ERROR:
            reported.setdefault(item.location.file, []).append(item.location.pointer)
    for document, faults in zip(documents, verdicts, strict=True):
        for fault in faults:
            place = document.at(fault.pointer)
            if not any(_overlap(place.pointer, known) for known in reported.get(place.file, ())):
                said = f"not valid OpenAPI: {fault.message}"
                diagnostics.error("K603", said, place, "`generate --lenient` reads on")


def _overlap(left: str, right: str) -> bool:
    """Whether one JSON pointer is the other's or leads through it."""
    return f"{left}/".startswith(f"{right}/") or f"{right}/".startswith(f"{left}/")
