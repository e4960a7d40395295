"""HorizontalPodAutoscalers: checks and table cells."""
