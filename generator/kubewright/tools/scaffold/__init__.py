"""What ``kubewright scaffold`` writes: group folders, kinds in them, further versions of a kind."""
