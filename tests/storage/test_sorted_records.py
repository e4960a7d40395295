"""The tree of records against a sorted list: equal after any story of changes, and old trees never change."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from apimachinery.storage.interface import Record
from apimachinery.storage.sorted_records import WIDTH, Inner, Node, RecordTree, Run

PREFIX = "/core/pods/"


def record(key: str, revision: int = 1) -> Record:
    return Record(key, revision, revision, b"{}")


def key(number: int) -> str:
    return f"{PREFIX}ns-{number % 7}/name-{number:05}"


def height(node: Node) -> int:
    return 1 + height(node.children[0]) if isinstance(node, Inner) else 0


def check(tree: RecordTree, records: dict[str, Record]) -> None:
    """The tree holds the records, its counts and first keys are right, and no node is too wide."""
    ordered = [records[each] for each in sorted(records)]
    whole = tree.run(PREFIX)
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

    assert walk(tree._root) == len(ordered)
    for namespace in {each.key.split("/")[3] for each in ordered}:
        scope = f"{PREFIX}{namespace}/"
        run = tree.run(scope)
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
        assert [*tree.run(middle)] == [records[middle]]


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 3 * WIDTH),
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "put", "remove", "remove", "read"]), st.integers(0, 4 * WIDTH)),
        max_size=120,
    ),
)
def test_any_story_of_changes_gives_the_sorted_records(start: int, steps: list[tuple[str, int]]) -> None:
    records = {key(number): record(key(number)) for number in range(start)}
    tree = RecordTree.of([records[each] for each in sorted(records)])
    check(tree, records)
    past: list[tuple[RecordTree, Run, dict[str, Record]]] = []
    for revision, (change, number) in enumerate(steps, 2):
        if change == "put":
            records[key(number)] = record(key(number), revision)
            tree.put(records[key(number)])
        elif change == "remove":
            records.pop(key(number), None)
            tree.remove(key(number))
        else:
            past.append((tree.fork(), tree.run(PREFIX), dict(records)))
    check(tree, records)
    for kept, run, then in past:
        assert [*run] == [then[each] for each in sorted(then)]
        check(kept, then)
        kept.put(record(key(0), 1))  # a fork changes on its own
    check(tree, records)


def test_a_tree_grows_and_shrinks_evenly() -> None:
    chance = random.Random(3)
    numbers = list(range(20_000))
    chance.shuffle(numbers)
    tree = RecordTree.of(())
    records = {}
    for number in numbers:
        records[key(number)] = record(key(number))
        tree.put(records[key(number)])
    check(tree, records)
    assert height(tree._root) == 2
    for number in numbers[:19_900]:
        del records[key(number)]
        tree.remove(key(number))
    check(tree, records)
    assert height(tree._root) <= 1
    for number in numbers[19_900:]:
        tree.remove(key(number))
    assert [*tree.run(PREFIX)] == []
    assert tree._root == []


def test_what_nobody_read_is_changed_in_place() -> None:
    tree = RecordTree.of([record(key(number)) for number in range(0, 3000, 7)])
    tree.put(record(key(7), 2))
    root = tree._root
    tree.put(record(key(7), 3))
    assert tree._root is root
    run = tree.run(PREFIX)
    tree.put(record(key(7), 4))
    assert tree._root is not root
    assert {each.revision for each in run} == {1, 3}


def test_a_key_that_is_not_there_changes_nothing() -> None:
    records = {key(number): record(key(number)) for number in range(0, 3000, 7)}
    tree = RecordTree.of([records[each] for each in sorted(records)])
    tree.remove(key(1))
    check(tree, records)
    tree = RecordTree.of(())
    tree.remove(key(1))
    check(tree, {})
