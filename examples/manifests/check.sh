#!/bin/sh
# What CI runs. Each command ends with 1 where it finds something.
set -eu
cd "$(dirname "$0")"
kubewright validate --strict --kubernetes 1.37 crds apps
kubewright lint --quiet crds
kubewright migrate --kubernetes 1.37 apps
