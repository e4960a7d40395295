"""Feature gates by release: what rules say in the releases before a gate was on by default.

The releases are those in which kube-apiserver 1.36 with ``--emulated-version`` counts a gate as enabled.
"""

from __future__ import annotations

import pytest

from apimachinery.kinds.core import claims
from apimachinery.kinds.formats import FORMATS
from apimachinery.kinds.storage import storage
from apimachinery.meta.names import NAME_RULES
from apimachinery.meta.release import rules_of


@pytest.mark.parametrize(("release", "strict"), [("1.36", True), ("1.35", False), ("1.33", False)])
def test_spellings_of_addresses(release: str, strict: bool) -> None:
    with rules_of(release):
        assert [bool(FORMATS["ip"](text)) for text in ("1.2.3.4", "001.2.3.4", "x")] == [
            False,
            strict,
            True,
        ]
        blocks = ("10.0.0.0/8", "10.0.0.1/8", "010.0.0.0/8", "x")
        assert [bool(FORMATS["cidr"](text)) for text in blocks] == [False, strict, strict, True]


@pytest.mark.parametrize(("release", "relaxed"), [("1.36", True), ("1.35", False)])
def test_names_of_services(release: str, relaxed: bool) -> None:
    with rules_of(release):
        assert (NAME_RULES["service"]("1-web", False) == []) is relaxed
        assert NAME_RULES["service"]("web-", True) == []


@pytest.mark.parametrize(("release", "told"), [("1.34", []), ("1.33", ["spec.volumeAttributesClassName"])])
def test_classes_of_volume_attributes(release: str, told: list[str]) -> None:
    with rules_of(release):
        faults = claims.kept_attributes_class({"volumeAttributesClassName": "a"}, {})
        assert [fault.field for fault in faults] == told


@pytest.mark.parametrize(("release", "told"), [("1.35", []), ("1.34", ["spec.drivers"])])
def test_amounts_of_drivers(release: str, told: list[str]) -> None:
    drivers = [[{"name": "d", "nodeID": "n", "allocatable": {"count": count}}] for count in (1, 2)]
    with rules_of(release):
        assert [fault.field for fault in storage.kept_drivers(drivers[1], "spec.drivers", drivers[0])] == told
