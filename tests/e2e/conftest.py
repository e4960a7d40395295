"""One server for all clients, with a CRD of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.testing import ApiServer

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.e2e.example.com}
spec:
  group: e2e.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wg]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 0, default: 1}
              color: {type: string, enum: [red, blue]}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory):
    path: Path = tmp_path_factory.mktemp("crds") / "widgets.yaml"
    path.write_text(CRD)
    with ApiServer(crds=[path]) as running:
        yield running


@pytest.fixture
def namespace(server):
    with server.namespace("e2e-") as name:
        yield name
