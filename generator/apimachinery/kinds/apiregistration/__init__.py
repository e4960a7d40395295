"""APIServices: checks, and those that the server itself registers."""
