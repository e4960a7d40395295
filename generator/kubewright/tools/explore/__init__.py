"""The explorer: what its page and the text commands show of objects, and the server of the page."""
