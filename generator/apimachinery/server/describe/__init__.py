"""The server describes itself: discovery and OpenAPI."""
