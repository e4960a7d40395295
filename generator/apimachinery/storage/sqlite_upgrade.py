"""Databases of formats 1 and 2, brought to where objects are kept today.

There a custom object had the key that a package's object of the same group and plural has. Whose it is, its newest
record says: the two are written with other fields first. An encrypted record does not say it; then it is a custom one
if a definition names its resource, which is not Kubernetes' own. All records of a key go together, the history too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Set

from apimachinery.storage.layout import (
    custom_prefix,
    is_kubernetes,
    package_prefix,
    place_of,
    written_as_custom,
)
from apimachinery.storage.sqlite_checks import checksum, is_whole

DEFINITIONS = package_prefix("apiextensions.k8s.io", "customresourcedefinitions")
# A bare column next to max() comes from the row of the maximum (documented by SQLite).
_NEWEST = "SELECT key, max(revision), substr(CAST(value AS BLOB), 1, 16) FROM log GROUP BY key"
_DEFINED = "SELECT DISTINCT key FROM log WHERE key >= ? AND key < ?"
_ROWS = "SELECT revision, created, deleted, value, checksum FROM log WHERE key = ?"
_MOVE = "UPDATE log SET key = ?, checksum = ? WHERE revision = ?"


def separate_custom(connection: sqlite3.Connection) -> int:
    """Gives custom objects their own keys, within the transaction of the caller; how many there were."""
    rows = connection.execute(_DEFINED, (DEFINITIONS, f"{DEFINITIONS[:-1]}0"))  # "0" follows "/"
    defined = {str(key).removeprefix(DEFINITIONS) for (key,) in rows}
    moving = [key for key, _, head in connection.execute(_NEWEST) if _is_custom(key, head, defined)]
    for key in moving:
        _move(connection, key)
    return len(moving)


def _is_custom(key: object, head: bytes, defined: Set[str]) -> bool:
    try:
        group, plural, custom = place_of(str(key))
    except ValueError:  # a damaged row, which is reported by who reads it
        return False
    if custom:
        return False
    written = written_as_custom(head)
    if written is not None:
        return written
    return f"{plural}.{group}" in defined and not is_kubernetes(group, plural)


def _move(connection: sqlite3.Connection, key: str) -> None:
    group, plural, _ = place_of(key)
    own = custom_prefix(group, plural) + key.split("/", 3)[3]
    for revision, created, deleted, value, said in connection.execute(_ROWS, (key,)).fetchall():
        # A damaged record stays one: its checksum is none of the new key either.
        if said is not None and is_whole(key, revision, created, deleted, value, said):
            said = checksum(own, revision, created, deleted, value)
        connection.execute(_MOVE, (own, said, revision))
