"""Type checking of a parsed expression: which overload each call takes, and which literals are wrong."""
