"""A running server, and the options it takes: the public name of what ``assembly.server`` and ``backend`` have."""

from apimachinery.server.assembly.server import MakeAudit, Server
from apimachinery.server.backend import Backend, BuildApi, ServerOptions

__all__ = ["Backend", "BuildApi", "MakeAudit", "Server", "ServerOptions"]
