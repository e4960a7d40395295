"""What the commands read: APIs by path, git revision or release, objects from files, a live cluster."""
