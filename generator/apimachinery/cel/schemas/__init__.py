"""CEL in schemas: types from an OpenAPI schema, x-kubernetes-validations compiled, checked and run."""
