"""Steps of the recorded area crd, computed without a server.

Every one agrees to the letter but those named here.
"""

from __future__ import annotations

import pytest

from tests.crd.recorded import SCENARIOS, play

NOT_COMPUTED = {
    "cluster-scoped-finalizers: no new objects while the CRD goes",
    "crd-lifecycle: creating it again is AlreadyExists",
    "validate-formats: a number too big for a double",  # the decoder of JSON refuses it
}
COMPUTED = {
    "cel-basic": 15,
    "cluster-scoped-finalizers": 12,
    "columns": 1,
    "crd-invalid-defaults": 18,
    "crd-invalid-extras": 28,
    "crd-invalid-forms": 25,
    "crd-invalid-lists": 26,
    "crd-invalid-names": 28,
    "crd-invalid-schema": 30,
    "crd-lifecycle": 5,
    "crd-names-conflict": 2,
    "crd-update": 5,
    "defaulting": 19,
    "field-validation-custom": 16,
    "pruning": 12,
    "ratcheting": 30,
    "subresources": 6,
    "validate-formats": 27,
    "validate-limits": 22,
    "validate-logic": 32,
    "validate-types": 27,
    "versions": 6,
}

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SCENARIOS.exists(), reason="needs the ../shared folder of recordings"),
]


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_steps_agree(name: str) -> None:
    steps = list(play(SCENARIOS / f"crd/{name}.yaml"))
    assert len(steps) >= COMPUTED[name]
    differing = {step.name: (step.wanted, step.got) for step in steps if not step.same_text}
    assert {key: value for key, value in differing.items() if key not in NOT_COMPUTED} == {}
