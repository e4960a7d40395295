"""Moved to ``apimachinery.kinds``: the names that generated code imports from here work until 0.2."""
