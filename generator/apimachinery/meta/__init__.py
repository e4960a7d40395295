"""What every kind has: errors, field_errors, names, object_meta, quantity, resources, scheme, selectors, strategies."""
