"""From bytes to documents (placeholder of the next commit)."""
