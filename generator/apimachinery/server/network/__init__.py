"""Where Services and the addresses that objects name can be reached from this process."""
