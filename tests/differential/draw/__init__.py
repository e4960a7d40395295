"""Conversations drawn at random, an area a file. The same seed draws the same conversations."""
