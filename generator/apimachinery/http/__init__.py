"""HTTP/1.1 on a socket: protocol, messages, compression, TLS. Nothing here knows Kubernetes."""
