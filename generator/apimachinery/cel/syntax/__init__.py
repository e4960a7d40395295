"""From text to a syntax tree: lexer, parser, macros, and errors with their line and column."""
