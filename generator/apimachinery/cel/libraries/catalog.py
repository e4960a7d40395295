"""Which library came with which Kubernetes release: in which new CRDs and policies may use it, the one after that which
reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.syntax import macros as m
from apimachinery.cel.syntax.macros import Expander, MacroKey

from .authorizer import authorizer, authorizer_selectors
from .encoders import encoders
from .formats import formats
from .jsonpatch import jsonpatch
from .lists import LIST_MACROS, kubernetes_lists, list_extension
from .math import MATH_MACROS, math_library
from .network import cidrs, ips
from .optionals import optionals
from .quantity import quantities
from .regex import regex
from .semver import semvers
from .sets import sets
from .standard import cross_type_comparisons, standard
from .strings import strings
from .two_variables import two_variable_comprehensions
from .urls import urls

MakeLibrary = Callable[[], Library]

# (since, until or "", library)
_RELEASES: tuple[tuple[str, str, MakeLibrary], ...] = (
    ("1.23", "", standard),
    ("1.23", "", urls),
    ("1.23", "", regex),
    ("1.23", "", kubernetes_lists),
    ("1.23", "1.29", lambda: strings(0)),
    ("1.28", "", authorizer),
    ("1.29", "", lambda: strings(2)),
    ("1.29", "", cross_type_comparisons),
    ("1.29", "", optionals),
    ("1.29", "", quantities),
    ("1.30", "", sets),
    ("1.31", "", ips),
    ("1.31", "", cidrs),
    ("1.32", "", formats),
    ("1.32", "", authorizer_selectors),
    ("1.33", "", two_variable_comprehensions),
    ("1.34", "", semvers),
    ("1.35", "", list_extension),
)
_MACROS: tuple[tuple[str, Mapping[MacroKey, Expander]], ...] = (
    ("1.23", m.STANDARD),
    ("1.29", m.OPTIONAL),
    ("1.33", m.TWO_VARIABLES),
    ("1.35", LIST_MACROS),
)
ALL_LIBRARIES: tuple[MakeLibrary, ...] = (
    standard,
    cross_type_comparisons,
    optionals,
    strings,
    math_library,
    encoders,
    urls,
    regex,
    kubernetes_lists,
    quantities,
    sets,
    ips,
    cidrs,
    formats,
    two_variable_comprehensions,
    semvers,
    list_extension,
    authorizer,
    authorizer_selectors,
    jsonpatch,
)
ALL_MACROS = (m.STANDARD, m.OPTIONAL, m.TWO_VARIABLES, m.BINDINGS, LIST_MACROS, MATH_MACROS)
OLDEST = "1.23"


def _number(version: str) -> tuple[int, int]:
    major, _, minor = version.removeprefix("v").partition(".")
    return int(major), int(minor.partition(".")[0])


def kubernetes_libraries(version: str) -> list[Library]:
    """The libraries of that release. ValueError for a version that is not ``major.minor``."""
    wanted = _number(version)
    return [
        make()
        for since, until, make in _RELEASES
        if _number(since) <= wanted and not (until and wanted >= _number(until))
    ]


def kubernetes_macros(version: str) -> list[Mapping[MacroKey, Expander]]:
    """The macros of that release."""
    wanted = _number(version)
    return [table for since, table in _MACROS if _number(since) <= wanted]
