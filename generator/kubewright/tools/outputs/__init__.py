"""What the commands write: findings in every format, files put into a folder."""
