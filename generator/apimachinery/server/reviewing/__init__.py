"""The other side of webhooks: a server that answers the reviews of a kube-apiserver."""
