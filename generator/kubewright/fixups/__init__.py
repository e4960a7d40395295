"""Faults of upstream specs that we live with: one named fixup each, with its reason.

A fixup says which inputs it is for and what it fixes there. Where it is for an input and finds nothing
to do any more, that is an error (K604): workarounds expire.
"""

from kubewright.fixups.list_markers import (
    CSI_STORAGE_CAPACITY_LIST,
    STATUS_DETAILS,
    STORAGE_VERSION_MIGRATION_LIST,
)

MENDS = (CSI_STORAGE_CAPACITY_LIST, STORAGE_VERSION_MIGRATION_LIST, STATUS_DETAILS)
