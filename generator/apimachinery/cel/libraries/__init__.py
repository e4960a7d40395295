"""The function libraries, one file each; ``environment`` says which Kubernetes version brought which."""
