"""The sub-commands, a module each: apply3, cel, diff, generate, lint, patch, sdk, serve."""
