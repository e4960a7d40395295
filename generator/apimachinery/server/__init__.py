"""The API server. A request goes through process, api, app and handlers; a folder for each thing they call."""
