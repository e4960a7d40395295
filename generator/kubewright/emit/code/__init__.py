"""What emitters share: names, layout, literals and docstrings, how rules become code."""
