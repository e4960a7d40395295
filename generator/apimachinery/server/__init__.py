"""The API server: protocol, http, routes, handlers; reads (listing, watch), writes, patch, discovery, openapi, CRDs."""
