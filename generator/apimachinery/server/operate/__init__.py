"""For those who run the server: health, metrics, the kubeconfig it writes."""
