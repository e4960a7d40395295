"""A kind that is described, and cannot be used."""

from __future__ import annotations


class UnusableSchema(Exception):
    """The CRD of a kind is itself refused; the text says why."""
