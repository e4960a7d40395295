"""Releases of Kubernetes against each other: known removals are found and no others, and each error was judged."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.diagnostics import Diagnostics, Severity
from kubewright.ir.api import Api
from kubewright.source.kubernetes_validate import releases
from kubewright.tools.diff.change import ApiChange
from kubewright.tools.diff.command import read_state
from kubewright.tools.diff.policy import weigh
from kubewright.tools.diff.resources import compare
from kubewright.tools.diff.roundtrip import find_losses

JUDGED: dict[str, Any] = yaml.load(
    (Path(__file__).parent / "release_changes.yaml").read_text(), yaml.CSafeLoader
)
CRDS = Path(__file__).parents[3] / "../shared/data/crds"
GUIDE = {
    "1.26": {"flowcontrol.apiserver.k8s.io/v1beta1", "autoscaling/v2beta2"},
    "1.27": {"storage.k8s.io/v1beta1"},
    "1.29": {"flowcontrol.apiserver.k8s.io/v1beta2"},
    "1.32": {"flowcontrol.apiserver.k8s.io/v1beta3"},
}
"""Release → API versions of which the deprecated API migration guide says that it no longer serves kinds."""


@cache
def state(release: str) -> Api:
    diagnostics = Diagnostics()
    api = read_state(f"kubernetes:{release}", None, diagnostics)
    assert not diagnostics.has_errors
    return api


@cache
def changes(release: str) -> tuple[ApiChange, ...]:
    """What ``release`` changed."""
    major, _, minor = release.partition(".")
    return tuple(compare(state(f"{major}.{int(minor) - 1}"), state(release)))


def registered(release: str) -> set[tuple[str, str, str]]:
    """The kinds that the definitions of a release register, whatever the catalog says."""
    return {kind for definition in state(release).definitions for kind in definition.kinds}


LATER = releases()[1:]


@pytest.mark.slow
@pytest.mark.parametrize("release", LATER)
def test_what_a_release_removed_is_told_and_nothing_else(release: str) -> None:
    before = LATER[LATER.index(release) - 1] if release != LATER[0] else releases()[0]
    gone = registered(before) - registered(release)
    paths = {
        (r.group, r.version, r.kind): f"{r.plural}.{r.group}/{r.version}"
        if r.group
        else f"{r.plural}/{r.version}"
        for r in state(before).resources
    }
    told = {c.path for c in changes(release) if c.kind.code in ("D101", "D102", "D103")}
    assert told == {paths[kind] for kind in gone if kind in paths}
    for api_version in GUIDE.get(release, ()):
        group, _, version = api_version.rpartition("/")
        assert any(path.endswith(f".{group}/{version}") for path in told), api_version


@pytest.mark.slow
@pytest.mark.parametrize("release", LATER)
def test_each_error_between_releases_was_judged(release: str) -> None:
    told = [f"{c.kind.code} {c.path}" for c in changes(release) if weigh(c) is Severity.ERROR]
    assert sorted(told) == sorted(error for errors in JUDGED[release].values() for error in errors)


def test_every_pair_of_releases_is_judged() -> None:
    assert [*JUDGED] == [*LATER]


def test_the_catalog_carries_every_field_between_versions() -> None:
    codes = {loss.kind.code for loss in find_losses(state(releases()[-1]))}
    assert codes <= {"D303"}


@pytest.mark.shared
@pytest.mark.skipif(not CRDS.exists(), reason="the ../shared folder of recordings is absent")
@pytest.mark.parametrize(
    ("project", "least"), [("flux", 7), pytest.param(".", 75, marks=pytest.mark.thorough)]
)
def test_real_crds_differ_in_nothing_from_themselves(project: str, least: int) -> None:
    first, second = (read_state(str(CRDS / project), None, Diagnostics()) for _ in range(2))
    assert len(first.resources) > least
    assert compare(first, second, documentation=True) == []
