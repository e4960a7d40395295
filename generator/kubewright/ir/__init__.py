"""What every stage passes on: frozen data, language-neutral (types, merge, api), and its three readers:
link joins fragments, check looks for faults, dump prints."""
