"""One file an emitter, named in registry; layout and names decide every identifier, render every literal."""
