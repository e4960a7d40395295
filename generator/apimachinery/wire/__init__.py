"""Bodies of requests: json, yaml, protobuf, cbor; each reads and writes plain JSON values."""
