"""PriorityClasses, workloads and pod groups: checks."""
