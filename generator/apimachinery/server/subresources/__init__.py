"""Subresources and calls that are not objects."""
