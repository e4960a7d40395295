"""The tree of records against a sorted list: equal after any story of changes, and old trees never change."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from apimachinery.storage.interface import Record
from apimachinery.storage.sorted_records import (
    EMPTY,
    WIDTH,
    Inner,
    Node,
    Run,
    tree_of,
    with_record,
    without_key,
)

PREFIX = "/core/pods/"


def record(key: str, revision: int = 1) -> Record:
    return Record(key, revision, revision, b"{}")


def key(number: int) -> str:
    return f"{PREFIX}ns-{number % 7}/name-{number:05}"


def height(node: Node) -> int:
    return 1 + height(node.children[0]) if isinstance(node, Inner) else 0


def check(root: Node, records: dict[str, Record]) -> None:
    """The tree holds the records, its counts and first keys are right, and no node is too wide."""
    ordered = [records[each] for each in sorted(records)]
    whole = Run.of(root, PREFIX)
    assert [*whole] == ordered
    assert len(whole) == len(ordered)

    def walk(node: Node) -> int:
        if not isinstance(node, Inner):
            assert len(node) <= WIDTH
            return len(node)
        assert 0 < len(node.children) <= WIDTH
        assert node.sizes == [walk(child) for child in node.children]
        assert [height(child) for child in node.children] == [height(node) - 1] * len(node.children)
        return sum(node.sizes)

    assert walk(root) == len(ordered)
    for namespace in {each.key.split("/")[3] for each in ordered}:
        scope = f"{PREFIX}{namespace}/"
        run = Run.of(root, scope)
        expected = [each for each in ordered if each.key.startswith(scope)]
        assert [*run] == expected
        assert [run[index] for index in range(len(run))] == expected
        assert run[1:3] == expected[1:3]
        assert run[-2:] == expected[-2:]
        assert run[:0] == []
        assert [*run.part(1, 3)] == expected[1:3]
        assert [*run.part(1, 3).part(1, 9)] == expected[2:3]
        middle = expected[len(expected) // 2].key
        assert run.first_at(middle) == len(expected) // 2
        assert run.first_at(middle + "\0") == len(expected) // 2 + 1
        assert [*Run.of(root, middle)] == [records[middle]]


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 3 * WIDTH),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 4 * WIDTH)), max_size=80),
)
def test_any_story_of_changes_gives_the_sorted_records(start: int, steps: list[tuple[bool, int]]) -> None:
    records = {key(number): record(key(number)) for number in range(start)}
    root = tree_of([records[each] for each in sorted(records)])
    check(root, records)
    past = [(root, dict(records))]
    for revision, (puts, number) in enumerate(steps, 2):
        if puts:
            records[key(number)] = record(key(number), revision)
            root = with_record(root, records[key(number)])
        else:
            records.pop(key(number), None)
            root = without_key(root, key(number))
        past.append((root, dict(records)))
    for each in past[::7] + past[-1:]:
        check(*each)


def test_a_tree_grows_and_shrinks_evenly() -> None:
    chance = random.Random(3)
    numbers = list(range(20_000))
    chance.shuffle(numbers)
    root: Node = EMPTY
    records = {}
    for number in numbers:
        records[key(number)] = record(key(number))
        root = with_record(root, records[key(number)])
    check(root, records)
    assert height(root) == 2
    for number in numbers[:19_900]:
        del records[key(number)]
        root = without_key(root, key(number))
    check(root, records)
    assert height(root) <= 1
    for number in numbers[19_900:]:
        root = without_key(root, key(number))
    assert root == EMPTY
    assert without_key(EMPTY, key(1)) is EMPTY


def test_a_key_that_is_not_there_changes_nothing() -> None:
    root = tree_of([record(key(number)) for number in range(0, 3000, 7)])
    assert without_key(root, key(1)) is root
