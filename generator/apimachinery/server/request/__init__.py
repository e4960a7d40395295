"""What a request asks for: path, verb, options, media types, body."""
