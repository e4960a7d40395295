"""Modules of ``apimachinery.meta`` that moved to ``apimachinery.typed``: their old names work until 0.2."""
