"""The options and examples of every command, a module for each: what ``--help`` and completion read.

Nothing here imports what a command runs with; so a help is as quick as that of a compiled program, and is there without
the command's extra. The few facts of other rooms that a help names are written out, and held against their source by a
test.
"""
