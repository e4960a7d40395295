"""Faults of upstream specs that we live with: one named function each, with its reason.

A fixup says which inputs it is for and what it waives there. Where it is for an input and finds nothing to
waive any more, that is an error (K604): workarounds expire.
"""

from kubewright.fixups.empty_defaults import EMPTY_DEFAULTS

FIXUPS = (EMPTY_DEFAULTS,)
