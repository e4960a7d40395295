"""Jobs and CronJobs: checks."""
