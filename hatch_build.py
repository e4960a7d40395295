"""What the build of a wheel adds.

The descriptions of Kubernetes' own kinds, from the package kubernetes-validate; and with KUBEWRIGHT_COMPILED=1 what
mypyc makes of the modules that build/compiled.toml names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = os.environ.get("KUBEWRIGHT_COMPILED") == "1"
_FOLDER = re.compile(r"v(\d+\.\d+)\.\d+-local")


class WheelHook(BuildHookInterface[Any]):
    """Packs the descriptions and compiled modules into the wheel; an editable install reads what they are made of."""

    def dependencies(self) -> list[str]:
        """Name what this build needs beyond pyproject.toml."""
        return self._compiler().REQUIREMENTS if COMPILED else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files that are made."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="kubewright-build-")
        self._describe(build_data)
        if COMPILED:
            self._compile(build_data)

    def _compile(self, build_data: dict[str, Any]) -> None:
        folder = Path(self._folder.name, "compiled")
        for library in self._compiler().compile_into(folder):
            build_data["force_include"][str(folder / library)] = library.as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _compiler(self) -> Any:
        sys.path.insert(0, str(Path(self.root, "build")))
        import compiled

        return compiled

    def _describe(self, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root, "generator")))
        from kubewright.source import prose

        try:
            import kubernetes_validate
        except ImportError:
            self.app.display_warning("no kubernetes-validate: the wheel will have no descriptions of fields")
            return
        schemas = Path(str(kubernetes_validate.__file__)).parent / "kubernetes-json-schema"
        texts = {}
        for folder in schemas.iterdir():
            if found := _FOLDER.fullmatch(folder.name):
                definitions = json.loads((folder / "_definitions.json").read_bytes())["$defs"]
                texts[found[1]] = prose.texts_of(definitions)
        packed = Path(self._folder.name, prose.FILE)
        prose.pack(texts, packed)
        build_data["force_include"][str(packed)] = f"kubewright/specs/kubernetes/{prose.FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made, which is in the wheel."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()
