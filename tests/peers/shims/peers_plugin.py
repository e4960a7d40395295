"""A pytest plugin for other people's suites: gives them our server where they look for theirs."""

from __future__ import annotations

import os
import sys
import types

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of pytest-kind that kr8s' conftest reads."""
    parser.addoption("--keep-cluster", dest="keep_cluster", action="store_true", default=True)


def _official() -> None:
    """``kubernetes.e2e_test.base``, which the source distribution leaves out."""
    base = types.ModuleType("kubernetes.e2e_test.base")

    def get_e2e_configuration() -> object:
        from kubernetes import config
        from kubernetes.client.configuration import Configuration

        made = Configuration()
        config.load_kube_config(os.environ["PEERS_KUBECONFIG"], client_configuration=made)
        return made

    base.get_e2e_configuration = get_e2e_configuration  # type: ignore[attr-defined]
    package = types.ModuleType("kubernetes.e2e_test")
    package.base = base  # type: ignore[attr-defined]
    sys.modules["kubernetes.e2e_test"] = package
    sys.modules["kubernetes.e2e_test.base"] = base


_official()
