"""The other side of webhooks: what generated packages answer to the reviews of a kube-apiserver."""
