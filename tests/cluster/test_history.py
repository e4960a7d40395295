"""The history checker finds what it is there for."""

from __future__ import annotations

import pytest
from tests.cluster.history import Read, Refused, Write, faults_of_history, faults_of_watches

GOOD = [
    Write("a", 0, 1, 0, 2, "x"),
    Read("a", 1.5, 2, 2, "x"),
    Write("a", 2, 5, 2, 7, "y"),
    Read("a", 3, 4, 2, "x"),  # beside the write: either is right
    Read("a", 3, 4, 7, "y"),
    Refused("a", 5.5, 6, 2),
    Write("a", 6, 9, 7, 0, "z"),
    Read("a", 10, 11, 9, "z"),  # the write whose answer never came was made
]


def test_a_good_history():
    assert faults_of_history(GOOD) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (Read("a", 12, 13, 7, "y"), "a read was answered 7 after 9"),
        (Read("a", 12, 13, 9, "y"), "revision 9 is"),
        (Read("a", 12, 13, 11, "w"), "nobody wrote 'w'"),
        (Write("a", 12, 13, 9, 9, "v"), "a write was answered 9 after 9"),
        (Write("a", 12, 13, 2, 12, "v"), "two writes over revision 2"),
        (Write("a", 12, 13, 8, 7, "v"), "two writes were answered revision 7"),
        (Write("a", 12, 13, 6, 12, "v"), "was written over 6, though 7 was there"),
    ],
)
def test_what_is_found(more, said):
    assert said in str(faults_of_history([*GOOD, more]))


def test_a_refusal_without_a_reason():
    assert "which nobody changed" in str(faults_of_history([*GOOD[:2], Refused("a", 3, 4, 2)]))


EVENTS = [(2, "a"), (3, "b"), (5, "a")]


@pytest.mark.parametrize(
    ("seen", "answered", "said"),
    [
        ([[(1, 5, EVENTS)], [(1, 3, EVENTS[:2]), (3, 5, EVENTS[2:])]], [(3, "b")], ""),
        ([[(1, 5, EVENTS)], [(1, 5, EVENTS[::2])]], [], "1 events lost between 1 and 5: [3]"),
        ([[(1, 5, EVENTS)], [(1, 5, [EVENTS[0], *EVENTS])]], [], "doubled or out of order"),
        ([[(1, 5, [EVENTS[1], EVENTS[0], EVENTS[2]])]], [], "out of order"),
        ([[(1, 5, EVENTS)], [(1, 2, [(2, "z")])]], [], "of a and of z"),
        ([[(1, 5, EVENTS)]], [(4, "c")], "no watcher saw the write of c at 4"),
    ],
)
def test_what_is_found_in_watches(seen, answered, said):
    faults = faults_of_watches(seen, answered)
    assert said in str(faults) and bool(said) == bool(faults)
