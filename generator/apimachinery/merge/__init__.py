"""Merging: server-side apply, strategic merge patch, JSON patches, on plain JSON values and a merge schema.

Stands alone: nothing here knows models, requests or storage. Read in this order:

- ``schema``        how values merge, as data; ``from_openapi`` reads it from OpenAPI, ``compile`` makes it fast
- ``field_set``     sets of field paths in the form of FieldsV1; ``fields_v1`` reads and writes them
- ``typed lists``   the walks over a value: owned, added, compare, merge, remove, extract, reconcile
- ``updater``       owners under update and apply; ``managed_fields`` their entries
- ``apply``         server-side apply as a server calls it: ``FieldOwnership``, ``keep_times``
- ``scale``         owners of the scale subresource
- ``strategic``     strategic merge patch; ``strategic_diff`` makes one, two-way or three-way
- ``json_patch merge_patch``   RFC 6902 and RFC 7386, as kube-apiserver applies them
- ``errors``        what all of them raise
"""
