"""CEL: parser, macros, checker, estimate (costs), planner (programs), libraries; rule_checks and rule_runs for CRDs."""
