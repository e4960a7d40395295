"""What may be written: one contract (interface) and its plugins, a file each."""
