"""What answers are made of: accepted forms, table cells, column paths, ages, orders of versions."""

from __future__ import annotations

import pytest

from apimachinery.kinds.cells import CELLS
from apimachinery.kinds.durations import human
from apimachinery.meta.errors import ApiError
from apimachinery.meta.json_path import PathError, parse_path
from apimachinery.server.catalog.catalog import version_order
from apimachinery.server.request.codecs import Codecs
from apimachinery.server.request.negotiation import negotiate

ACCEPTED = {
    "": "application/json",
    "*/*": "application/json",
    "application/*": "application/json",
    "application/yaml": "application/yaml",
    "text/html,application/yaml": "application/yaml",
    "application/json;q=0.3,application/yaml;q=0.9": "application/yaml",
    "application/json;as=Table;g=meta.k8s.io;v=v9,application/json": "application/json",
}


@pytest.mark.parametrize("accept", ACCEPTED)
def test_accepted(accept: str) -> None:
    assert negotiate(accept, Codecs()).codec.media_type == ACCEPTED[accept]


@pytest.mark.parametrize(
    "accept", ["text/plain", "application", "application/json;as=Table", "application/xml"]
)
def test_not_accepted(accept: str) -> None:
    with pytest.raises(ApiError) as error:
        negotiate(accept, Codecs())
    assert error.value.code == 406


OBJECT = {"spec": {"a.b": 1, "l": [{"t": "x", "v": 1}, {"t": "y", "v": 2}], "m": {"k": "v"}}}
PATHS = {
    ".spec.m.k": ["v"],
    "{.spec.m.k}": ["v"],
    "spec.m.k": ["v"],
    ".spec['a.b']": [],  # two fields, as client-go reads it
    r".spec.a\.b": [1],
    ".spec.l[0].v": [1],
    ".spec.l[-1].v": [2],
    ".spec.l[*].v": [1, 2],
    ".spec.l[0:1].v": [1],
    '.spec.l[?(@.t=="y")].v': [2],
    ".spec.l[?(@.v>1)].t": ["y"],
    "..k": ["v"],
    ".spec.nothing": [],
    ".spec.l[9]": [],
    ".spec.l[-9223372036854775808:9223372036854775807].v": [],
    ".spec.l[?(@.v<99999999999999999999)].t": [],  # a double, which is not compared with an integer
}


@pytest.mark.parametrize("path", PATHS)
def test_path(path: str) -> None:
    assert parse_path(path).find(OBJECT) == PATHS[path]


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[x",
        ".a[9223372036854775808]",
        ".a[0:-9223372036854775809]",
        ".a[?(@.b==1" + "0" * 400 + ")]",
        ".a[ 0 ]",
        '.a["b"]',
        ".a,b",
        ".a[?(1)",
        "..a....b",
    ],
)
def test_bad_path(path: str) -> None:
    with pytest.raises(PathError):
        parse_path(path).find(OBJECT)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (3600, "60m"), (10_800, "3h"), (90_000, "25h"),
     (200_000, "2d7h"), (86_400 * 30, "30d"), (86_400 * 800, "2y70d"), (-5, "<invalid>")],
)  # fmt: skip
def test_ages(seconds: int, text: str) -> None:
    assert human(seconds) == text


def test_versions_in_order() -> None:
    mixed = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1", "v1beta1", "v2alpha1"]
    assert sorted(mixed, key=version_order) == [
        "v10",
        "v2",
        "v1",
        "v1beta2",
        "v1beta1",
        "v2alpha1",
        "v1alpha1",
        "foo",
    ]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell))
def test_cells_stand_empty_objects(cell: tuple[str, str]) -> None:
    CELLS[cell]({"metadata": {}})
