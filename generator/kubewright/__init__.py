"""The compiler: cli, config, pipeline, output; ir, source, fixups, emit in folders; tools and testing on top."""
