"""The etcd driver: a log that several servers share (``driver``), over gRPC."""
