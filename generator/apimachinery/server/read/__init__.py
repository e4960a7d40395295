"""Reads: lists and watches from the watch cache, and the selectors that choose."""
