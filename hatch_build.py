"""What the build of a wheel adds: the descriptions of Kubernetes' own kinds, from the package kubernetes-validate."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = re.compile(r"v(\d+\.\d+)\.\d+-local")


class DescriptionsHook(BuildHookInterface[Any]):
    """Packs the descriptions into the wheel; an editable install reads them from the package itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the packed file."""
        if version == "editable":
            return
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
        self._folder = tempfile.TemporaryDirectory(prefix="kubewright-build-")
        packed = Path(self._folder.name, prose.FILE)
        prose.pack(texts, packed)
        build_data["force_include"][str(packed)] = f"kubewright/specs/kubernetes/{prose.FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the packed file, which is in the wheel."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()
