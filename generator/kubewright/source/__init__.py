"""One file a kind of spec; schema and markers are shared, reading sorts paths, catalog and rules read facts."""
