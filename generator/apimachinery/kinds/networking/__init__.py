"""NetworkPolicies, Ingresses, IPAddresses: checks and table cells."""
