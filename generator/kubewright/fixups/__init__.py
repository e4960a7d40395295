"""Faults of upstream specs that we live with: one named fixup each, with its reason.

A fixup says which inputs it is for and what it waives or fixes there. Where it is for an input and finds nothing
to do any more, that is an error (K604): workarounds expire.
"""

from kubewright.fixups.empty_defaults import EMPTY_CHOICES, EMPTY_DEFAULTS
from kubewright.fixups.list_markers import (
    CSI_STORAGE_CAPACITY_LIST,
    STATUS_DETAILS,
    STORAGE_VERSION_MIGRATION_LIST,
)

WAIVERS = (EMPTY_DEFAULTS, EMPTY_CHOICES)
MENDS = (CSI_STORAGE_CAPACITY_LIST, STORAGE_VERSION_MIGRATION_LIST, STATUS_DETAILS)
