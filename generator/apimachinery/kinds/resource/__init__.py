"""Dynamic resource allocation: claims, device classes, slices: checks."""
