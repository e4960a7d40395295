"""The runtime: type logic over JSON values here; meta, wire, merge, cel, rules, storage, server, client in folders."""
