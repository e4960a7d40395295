"""The Pod Security Standards: baseline, restricted, and how a violation is worded."""
