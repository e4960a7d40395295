"""docs/conformance.md says what ``specs.yaml`` does, and runs change states as they should."""

from __future__ import annotations

from tests.conformance.page import PAGE, rendered
from tests.conformance.specs import (
    FAILS,
    NOT_RUN,
    OUT_OF_REACH,
    PASSES,
    Conformance,
    Spec,
    load,
    updated,
    with_names,
)


def test_the_page_is_that_of_the_data() -> None:
    assert PAGE.read_text() == rendered(load()), (
        "run make conformance, or tests.conformance.run --only NOTHING"
    )


def test_every_state_has_its_reason() -> None:
    found = load()
    assert len({spec.name for spec in found.specs}) == len(found.specs) > 400
    assert {spec.reason for spec in found.specs if spec.state == OUT_OF_REACH} <= set(found.reasons)
    assert all(bool(spec.reason) == (spec.state in (FAILS, OUT_OF_REACH)) for spec in found.specs)


def test_a_run_changes_states() -> None:
    specs = (Spec("a", NOT_RUN), Spec("b", PASSES), Spec("c", OUT_OF_REACH, "x"), Spec("d", FAILS, "why"))
    found = Conformance("1", {"x": "X"}, specs)
    assert updated(found, {}) == found
    failed = updated(found, dict.fromkeys("abcd", "bad"))
    assert [(spec.state, spec.reason) for spec in failed.specs] == [
        (FAILS, "bad"),
        (FAILS, "bad"),
        (OUT_OF_REACH, "x"),
        (FAILS, "why"),
    ]
    passed = updated(found, dict.fromkeys("abcd", ""))
    assert {(spec.state, spec.reason) for spec in passed.specs} == {(PASSES, "")}
    assert with_names(found, ["d", "e"]).specs == (specs[3], Spec("e", NOT_RUN))
