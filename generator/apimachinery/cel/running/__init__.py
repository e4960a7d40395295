"""From a checked expression to a program: constants folded, fast paths chosen, steps that run it."""
