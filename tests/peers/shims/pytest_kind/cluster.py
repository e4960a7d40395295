"""The part of pytest-kind that kr8s' conftest uses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class KindCluster:
    """A cluster that is there already."""

    def __init__(self, name: str, image: str | None = None) -> None:
        self.name = name
        self.kubeconfig_path = Path(os.environ["PEERS_KUBECONFIG"])

    def create(self) -> None:
        """It runs already; what kr8s waits for is made, since no controller of service accounts runs here."""
        subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig_path), "create", "serviceaccount", "default"],
            capture_output=True,
            check=False,
            timeout=60,
        )

    def delete(self) -> None:
        """Nothing: who started it ends it."""

    def kubectl(self, *arguments: str, **_: object) -> str:
        """Runs kubectl."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
