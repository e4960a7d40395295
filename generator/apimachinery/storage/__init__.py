"""Where objects live: one contract (``interface``), its drivers, and the watch cache that serves reads."""
