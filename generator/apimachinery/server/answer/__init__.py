"""An object in the form the client asked for: another version, metadata alone, a Table."""
