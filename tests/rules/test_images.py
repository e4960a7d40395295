"""Images that mean the tag ``latest``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apimachinery.kinds.predicates import _names_latest, has_latest_tag

PARTS = st.sampled_from(
    ["a", "A", "/", ":", "@", "latest", ":latest", "sha256:", "0" * 32, "[::1]", ".", "-", " ", "5000", "é"]
)


@given(st.lists(PARTS, max_size=7).map("".join))
def test_a_glance_at_an_image_says_what_its_grammar_says(image: str) -> None:
    assert has_latest_tag(image) == _names_latest(image)
