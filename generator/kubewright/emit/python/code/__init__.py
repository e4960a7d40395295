"""What the parts of the Python emitter share: rules and calls as code, plain and awaited."""
