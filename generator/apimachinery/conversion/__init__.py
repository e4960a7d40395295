"""Conversion between versions: through the hub (versions), by declared moves, and by functions where no move fits."""
