"""Where objects are kept: no two resources share a key, and databases of the time when they could are separated."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apimachinery
from apimachinery.storage.encryption.configuration import Encryption, read_configuration
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.interface import Record, Value
from apimachinery.storage.layout import (
    WITH_GROUP,
    WITHOUT_GROUP,
    bound_place,
    custom_prefix,
    is_reserved,
    package_prefix,
    place_of,
)
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.moving import bring_home, check_objects, copy_objects
from apimachinery.storage.sealing import Sealing
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.sqlite_checks import Damaged, checksum
from apimachinery.storage.sqlite_log import _SCHEMA, APPLICATION_ID, FORMAT

SOURCES = str(Path(apimachinery.__file__).parents[1])
CRDS = "/apiextensions.k8s.io/customresourcedefinitions/"
OWN = [*((group, name) for group, names in WITHOUT_GROUP.items() for name in names), *WITH_GROUP]
LABELS = st.sampled_from(
    ["a", "core", "custom", "apps", "pods", "roles", "services", "specs", "endpoints", "x-1"]
)
GROUPS = st.lists(LABELS, min_size=1, max_size=3).map(".".join) | st.sampled_from([group for group, _ in OWN])
RESOURCES = st.tuples(
    GROUPS | st.just(""), LABELS | st.sampled_from([name for _, name in OWN]), st.booleans()
).filter(lambda each: "." in each[0] if each[2] else not is_reserved(each[0]))


def prefix_of(resource: tuple[str, str, bool]) -> str:
    group, plural, custom = resource
    return (custom_prefix if custom else package_prefix)(group, plural)


@settings(derandomize=True, max_examples=400)
@given(st.lists(RESOURCES, unique=True, max_size=12), st.sampled_from(["a", "ns/a", "ns/a.b"]))
def test_no_resource_begins_with_the_keys_of_another_anywhere(resources, names):
    keys = Keys("/registry")
    for one, other in itertools.permutations(resources, 2):
        assert not prefix_of(one).startswith(prefix_of(other))
        assert not keys.to_etcd(prefix_of(one)).startswith(keys.to_etcd(prefix_of(other)))
    for resource in resources:
        key = prefix_of(resource) + names
        assert place_of(key) == resource
        assert keys.from_etcd(keys.to_etcd(key)) == key


def test_what_is_encrypted_is_bound_to_the_object_and_chosen_by_its_resource():
    assert bound_place("/custom:example.com/widgets/ns/a") == "/example.com/widgets/ns/a"
    assert bound_place("/core/secrets/ns/a") == "/core/secrets/ns/a"
    sealing = encryption("widgets.example.com")
    assert sealing.names("/custom:example.com/widgets/ns/a") and sealing.names("/example.com/widgets/ns/a")
    assert not sealing.names("/custom:example.com/gears/ns/a")


# Databases of formats 1 and 2.


def encryption(resource: str) -> Encryption:
    secret = base64.b64encode(b"k" * 32).decode()
    providers = [{"aesgcm": {"keys": [{"name": "one", "secret": secret}]}}]
    rule = {"resources": [resource], "providers": providers}
    return read_configuration({"kind": "EncryptionConfiguration", "resources": [rule]})


def custom(name: str, revision: int, group: str = "example.com") -> bytes:
    return (
        b'{"apiVersion":"%b/v1","kind":"Widget","metadata":{"name":"%b","resourceVersion":"%d","uid":"u"}}'
        % (group.encode(), name.encode(), revision)
    )


def builtin(name: str, revision: int, group: str = "rbac.authorization.k8s.io") -> bytes:
    return (
        b'{"kind":"Role","apiVersion":"%b/v1","metadata":{"name":"%b","uid":"u","resourceVersion":"%d"}}'
        % (group.encode(), name.encode(), revision)
    )


class Old:
    """A database as an earlier version left it."""

    def __init__(self, path: Path, form: int = 2, sealing: Sealing | None = None) -> None:
        self.path, self._form, self._sealing = path, form, sealing
        self._connection = sqlite3.connect(path)
        self._connection.executescript(
            f"{_SCHEMA} INSERT INTO facts VALUES ('identity', 7); PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {form};"
        )
        self._newest: dict[str, tuple[int, int]] = {}
        self._revision = 1

    def put(self, key: str, make, *, deleted: bool = False) -> int:
        """Appends a record."""
        self._revision += 1
        revision = self._revision
        previous, created = self._newest.get(key, (0, revision))
        value = make(key.rpartition("/")[2], revision)
        if self._sealing is not None:
            value = self._sealing.seal(key, key.encode(), value)
        check = checksum(key, revision, created, deleted, value)
        self._connection.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)",
            (revision, key, created, previous, int(deleted), value, check),
        )
        self._newest[key] = (0, revision + 1) if deleted else (revision, created)
        return revision

    def close(self) -> None:
        if self._form == 1:
            self._connection.execute("ALTER TABLE log DROP COLUMN checksum")
        self._connection.commit()
        self._connection.close()


def definition(name: str, revision: int) -> bytes:
    return builtin(name, revision, "apiextensions.k8s.io")


def opened(path: Path, use, sealing: Sealing | None = None):
    """What ``use`` makes of the storage in a database."""

    async def run():
        storage = await SqliteStorage.open(path, sealing)
        try:
            return await use(storage)
        finally:
            await storage.close()

    return asyncio.run(run())


async def state(storage: SqliteStorage) -> dict[str, bytes]:
    return {record.key: record.value for record in (await storage.list("")).records}


def filled(path: Path, form: int = 2, sealing: Sealing | None = None) -> Old:
    old = Old(path, form, sealing)
    old.put(f"{CRDS}widgets.example.com", definition)
    old.put(f"{CRDS}clusterroles.rbac.authorization.k8s.io", definition)
    for name in ("ns/a", "ns/b", "ns/c"):
        old.put(f"/example.com/widgets/{name}", custom)
    old.put("/example.com/widgets/ns/a", custom)
    old.put("/example.com/widgets/ns/b", custom, deleted=True)
    old.put("/example.com/widgets/ns/b", custom)
    for name in ("admin", "view"):
        old.put(f"/rbac.authorization.k8s.io/clusterroles/{name}", builtin)
    old.put("/shop.example.com/orders/ns/a", lambda name, at: builtin(name, at, "shop.example.com"))
    return old


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("sealed", [False, True])
def test_custom_objects_of_an_old_database_get_keys_of_their_own_with_their_history(tmp_path, form, sealed):
    sealing = encryption("*.*") if sealed else None
    old = filled(tmp_path / "k.db", form, sealing)
    first = old.put("/example.com/widgets/ns/d", custom)
    old.close()

    async def use(storage: SqliteStorage) -> None:
        assert sorted(await state(storage)) == sorted(
            [
                f"{CRDS}clusterroles.rbac.authorization.k8s.io",
                f"{CRDS}widgets.example.com",
                *(f"/custom:example.com/widgets/ns/{name}" for name in "abcd"),
                *(f"/rbac.authorization.k8s.io/clusterroles/{name}" for name in ("admin", "view")),
                "/shop.example.com/orders/ns/a",
            ]
        )
        found = await storage.get("/custom:example.com/widgets/ns/d")
        assert found is not None and found == Record(found.key, first, first, custom("d", first))
        events, _ = await storage.events("/custom:example.com/widgets/", 1, 100)
        assert [(e.record.key[-1], e.revision, e.deleted) for e in events] == [
            ("a", 4, False), ("b", 5, False), ("c", 6, False), ("a", 7, False), ("b", 8, True), ("b", 9, False),
            ("d", 13, False),
        ]  # fmt: skip
        assert events[3].previous == events[0].record and events[4].previous == events[1].record
        before = (await storage.list("/custom:example.com/", at=6)).records
        assert [(record.key[-1], record.revision) for record in before] == [("a", 4), ("b", 5), ("c", 6)]
        assert not [fault for fault in (await check_objects(storage)).faults if " is of " in fault]
        assert storage.revision == 13

    for _ in range(2):  # once to move, once more to see that it lasts
        opened(tmp_path / "k.db", use, sealing)
    with sqlite3.connect(tmp_path / "k.db") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    connection.close()


def test_what_was_written_through_a_definition_leaves_the_built_in_kind_it_shadowed(tmp_path):
    old = filled(tmp_path / "k.db")
    group, prefix = "rbac.authorization.k8s.io", "/rbac.authorization.k8s.io/clusterroles/"
    old.put(f"{prefix}own", lambda name, at: custom(name, at, group))
    old.put(f"{prefix}view", lambda name, at: custom(name, at, group))  # over a built-in one
    old.put(f"{prefix}admin", lambda name, at: custom(name, at, group))
    old.put(f"{prefix}admin", builtin)  # and back
    old.close()

    async def use(storage: SqliteStorage) -> list[list[str]]:
        prefixes = (prefix, "/custom:rbac.authorization.k8s.io/clusterroles/")
        return [[r.key.rpartition("/")[2] for r in (await storage.list(each)).records] for each in prefixes]

    assert opened(tmp_path / "k.db", use) == [["admin"], ["own", "view"]]


def test_an_encrypted_object_of_kubernetes_own_kind_stays_though_a_definition_names_it(tmp_path):
    sealing = encryption("*.*")
    filled(tmp_path / "k.db", sealing=sealing).close()

    # Whoever opens it without keys (a restored backup) separates it as well; what it says is read with them.
    async def unreadable(storage: SqliteStorage) -> list[str]:
        return list(storage.unreadable)

    assert "/rbac.authorization.k8s.io/clusterroles/admin" in opened(tmp_path / "k.db", unreadable)
    keys = opened(tmp_path / "k.db", state, sealing)
    assert "/rbac.authorization.k8s.io/clusterroles/admin" in keys
    assert keys["/custom:example.com/widgets/ns/c"] == custom("c", 6)


def test_a_damaged_record_stays_one(tmp_path):
    filled(tmp_path / "k.db").close()
    with sqlite3.connect(tmp_path / "k.db") as connection:
        connection.execute("UPDATE log SET value = replace(value, 'Widget', 'Wodget') WHERE revision = 6")
    connection.close()
    with pytest.raises(Damaged, match=r"/custom:example\.com/widgets/ns/c at 6"):
        opened(tmp_path / "k.db", state)


KILLED = """
import os, sys
from pathlib import Path
from apimachinery.storage import sqlite_upgrade
from apimachinery.storage.sqlite_log import Log
left, whole = int(sys.argv[2]), sqlite_upgrade._move
def move(connection, key):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    whole(connection, key)
sqlite_upgrade._move = move
Log(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_who_is_killed_in_the_middle_has_changed_nothing_and_the_next_one_goes_on(tmp_path, moved):
    path = tmp_path / "k.db"
    filled(path).close()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(moved)],
        env={**os.environ, "PYTHONPATH": SOURCES},
        check=False,
    )
    assert ended.returncode == 9
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert not connection.execute("SELECT 1 FROM log WHERE key LIKE '/custom:%'").fetchall()
    connection.close()
    assert sum(key.startswith("/custom:") for key in opened(path, state)) == 3


def test_a_copy_of_an_old_database_is_separated_too(tmp_path):
    filled(tmp_path / "k.db").close()
    target = MemoryStorage()

    async def use(storage: SqliteStorage) -> None:
        await copy_objects(storage, target, lambda done, of: None, None)

    opened(tmp_path / "k.db", use)
    keys = [record.key for record in asyncio.run(target.list("")).records]
    assert "/custom:example.com/widgets/ns/a" in keys and "/shop.example.com/orders/ns/a" in keys


# Objects of packages in an etcd of before, which lay where custom ones do.


def stored(name: str) -> Value:
    head, tail = builtin(name, 0, "shop.example.com").split(b'"resourceVersion":"0"')
    return Value(head + b'"resourceVersion":"', b'"' + tail)


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 4, 5, 6])
def test_objects_that_are_brought_home_are_there_once_wherever_it_is_cut_short(cut):
    class Cut(Exception):
        pass

    class Cutting(MemoryStorage):
        left = cut

        async def create(self, key, value):
            self.count(key)
            return await super().create(key, value)

        async def delete(self, key, expected, last, *, marked=False):
            self.count(key)
            return await super().delete(key, expected, last, marked=marked)

        def count(self, key: str) -> None:
            self.left -= 1
            if not self.left:
                raise Cut(key)

    former, home = "/custom:shop.example.com/orders/", "/shop.example.com/orders/"

    async def run() -> list[str]:
        storage = Cutting()
        storage.left = 0
        for name in ("a", "b", "c"):
            await storage.create(f"{former}ns/{name}", stored(name))
        storage.left = cut
        for _ in range(2):
            try:
                await bring_home(storage, (await storage.list(former)).records, former, home)
            except Cut:
                # Whatever was cut, each object is there.
                keys = {record.key.rpartition("/")[2] for record in (await storage.list("")).records}
                assert keys == {"a", "b", "c"}
        return [record.key for record in (await storage.list("")).records]

    assert asyncio.run(run()) == [f"{home}ns/{name}" for name in ("a", "b", "c")]
