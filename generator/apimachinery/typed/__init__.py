"""What generated models stand on: the scheme of a package, objects that keep unknown fields, dataclass forms."""
