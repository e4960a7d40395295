"""What is served: Served (one resource at one version, compiled), where it comes from, and hooks of single kinds."""
