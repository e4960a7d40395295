"""StorageClasses, CSI drivers and nodes, attachments: checks and table cells."""
