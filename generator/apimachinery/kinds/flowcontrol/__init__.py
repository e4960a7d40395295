"""FlowSchemas and PriorityLevelConfigurations: checks."""
