"""A kustomization or a component, judged: kustomize refuses unknown fields, and files that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from apimachinery.meta.json import Json

REFUSED = "V041"

_LISTS = """resources bases components crds patches patchesStrategicMerge patchesJson6902 replacements vars images
replicas configMapGenerator secretGenerator helmCharts helmChartInflationGenerator configurations generators
transformers validators labels buildMetadata""".split()
_MAPS = "commonLabels commonAnnotations generatorOptions metadata openapi helmGlobals inventory".split()
_TEXTS = "apiVersion kind namespace namePrefix nameSuffix".split()
_FIELDS = {
    **dict.fromkeys(_LISTS, (list, "a list")),
    **dict.fromkeys(_MAPS, (dict, "a map")),
    **dict.fromkeys(_TEXTS, (str, "text")),
    "sortOptions": (dict, "a map"),
}
_FILES = ("resources", "bases", "components", "crds")


def faults(value: Json, file: str) -> Iterator[tuple[str, str, str]]:
    """(path, message, hint) of each fault."""
    for name, inner in value.items():
        known = _FIELDS.get(name)
        if known is None:
            near = get_close_matches(name, _FIELDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(_FIELDS))}"
            yield name, f'unknown field "{name}" of a kustomization', hint
        elif inner is not None and not isinstance(inner, known[0]):
            yield name, f"{known[1]} is wanted here", _as_list(name, inner)
    for name in _FILES:
        entries = value.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, str) and is_local(entry) and not (Path(file).parent / entry).exists():
                yield f"{name}[{index}]", f"no such file or folder: {entry}", ""


def is_local(entry: str) -> bool:
    """Whether a resource is a path of this machine: no address, no repository, no object written in place."""
    first = entry.partition("/")[0]
    return not ("\n" in entry or ":" in entry or "?" in entry or ("." in first.strip(".") and "/" in entry))


def _as_list(name: str, inner: Any) -> str:
    return f"write `{name}: [{inner}]`" if isinstance(inner, str) and _FIELDS[name][0] is list else ""
