"""The log of one process, followed by other processes of the same server."""
