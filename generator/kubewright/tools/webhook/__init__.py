"""``kubewright webhook``: a generated package's rules for somebody else's kube-apiserver."""
