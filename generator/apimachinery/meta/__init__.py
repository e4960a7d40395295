"""What every kind has: errors, field_errors, names, object_meta, quantity, resources, selectors, strategies."""

# Packages that were generated early import `apimachinery.meta.object` and its like. They moved to `typed`, which stands
# on `wire`, which stands on this package: the files of the old names are next to it, so that it imports nothing above.
__path__.append(__path__[0].removesuffix("meta") + "moved")
