"""``kubewright rbac``: ``graph`` answers who can do what and why, ``recording`` writes the least roles of a run,
``command`` reads options and prints."""
