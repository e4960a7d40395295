"""The client SDK: config, connection, resource (sync, async), informer over reflector, retry, errors, discovery."""
