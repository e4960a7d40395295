"""Makes the parts of a server, and starts and stops them in order: of one process, or of a writer and its readers."""
