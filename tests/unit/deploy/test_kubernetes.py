"""The Kubernetes manifests: valid against the published schemas, and holding what the operator is promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pydantic
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
OURS = ("gateway", "planner", "accounting", "grader", "executor")
STRANGERS = ("keda.sh/", "kustomize.config.k8s.io/")
SUPPORTED = ("1.31", "1.37")


def documents() -> list[dict[str, Any]]:
    found = [FOLDER / name for name in listed(FOLDER)]
    return [document for path in found for document in yaml.safe_load_all(path.read_text()) if document]


def listed(folder: Path) -> list[str]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return list(kustomization["resources"])


def of_kind(*kinds: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in documents() if each["kind"] in kinds}


WORKLOADS = of_kind("Deployment", "StatefulSet")


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_manifest_is_valid_for_the_oldest_and_newest_version(version: str) -> None:
    checked = 0
    component = FOLDER / "components" / "dataset-sources" / "network.yaml"
    for document in [*documents(), *yaml.safe_load_all(component.read_text())]:
        if not document["apiVersion"].startswith(STRANGERS):
            kubernetes_validate.validate(document, version, strict=True)
            checked += 1
    assert checked >= 20


def scaled() -> dict[str, Any]:
    (found,) = of_kind("ScaledObject").values()
    return found


def fits_keda(document: dict[str, Any]) -> bool:
    """Whether KEDA's schema takes a document and knows all that is in it: the models leave out what they do not know."""
    try:
        read = ScaledObject.model_validate(document)
    except pydantic.ValidationError:
        return False
    return bool(read.model_dump(by_alias=True, exclude_unset=True, mode="json") == document)


def test_what_keda_reads_is_valid_for_keda() -> None:
    assert fits_keda(scaled())


@pytest.mark.parametrize(
    "change",
    [
        {"minReplicas": 1},
        {"pollingInterval": "often"},
        {"triggers": [{"type": "prometheus"}]},
        {"scaleTargetRef": {"kind": "StatefulSet"}},
    ],
)
def test_what_keda_does_not_read_would_be_found(change: dict[str, Any]) -> None:
    assert not fits_keda(scaled() | {"spec": scaled()["spec"] | change})


def test_a_wrong_manifest_would_be_found() -> None:
    broken = yaml.safe_load((FOLDER / "gateway.yaml").read_text().split("---")[0])
    broken["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, SUPPORTED[-1], strict=True)


def test_every_file_is_listed_and_every_listed_file_is_there() -> None:
    there = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed(FOLDER)) == there


@pytest.mark.parametrize("name", OURS)
def test_each_process_is_probed_limited_unprivileged_and_kept_by_a_budget(name: str) -> None:
    pod = WORKLOADS[name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    security = container["securityContext"]
    assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert not any("hostPath" in volume for volume in pod["volumes"])
    budget = of_kind("PodDisruptionBudget")[name]["spec"]
    assert budget["selector"]["matchLabels"] == WORKLOADS[name]["spec"]["selector"]["matchLabels"]


def test_secrets_reach_only_those_who_need_them_and_as_files() -> None:
    def secrets(name: str) -> set[str]:
        volumes = WORKLOADS[name]["spec"]["template"]["spec"]["volumes"]
        projected = next(volume["projected"] for volume in volumes if volume["name"] == "secrets")
        return {source["secret"]["name"].removeprefix("sr-bench-") for source in projected["sources"]}

    assert {name: secrets(name) for name in OURS} == {
        "gateway": {"internal", "gateway"},
        "planner": {"internal", "storage"},
        "accounting": {"internal", "storage"},
        "grader": {"internal"},
        "executor": {"internal", "model-keys"},
    }
    assert "secretKeyRef" not in str(WORKLOADS)
    assert not of_kind("Secret"), "values are the operator's"


def test_only_executors_reach_out() -> None:
    policies = of_kind("NetworkPolicy")
    outside = {name for name, policy in policies.items() if "ipBlock" in str(policy["spec"].get("egress"))}
    assert outside == {"executor"}
    assert policies["nothing-else"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert set(policies) == {*OURS, "nothing-else"}


def test_executors_grow_with_the_queue_by_a_metric_that_the_planner_shows() -> None:
    scaled = of_kind("ScaledObject")["executor"]["spec"]
    assert scaled["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "executor"}
    assert "replicas" not in WORKLOADS["executor"]["spec"]
    from srbench_kit.metrics import METERS
    from srbench_planner import measuring
    from srbench_planner.queue import WorkQueue

    measuring.watch(WorkQueue())
    query = scaled["triggers"][0]["metadata"]["query"]
    assert any(name in query for name in METERS), query


def test_addresses_are_those_of_the_services() -> None:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    literals = dict(entry.split("=", 1) for entry in kustomization["configMapGenerator"][0]["literals"])
    ports = {name: {port["port"] for port in service["spec"]["ports"]} for name, service in of_kind("Service").items()}
    for name in ("PLANNER_ADDRESS", "ACCOUNTING_ADDRESS", "GRADER_ADDRESS", "EXECUTOR_ADDRESSES"):
        host, _, port = literals[f"SR_BENCH_{name}"].partition(":")
        assert int(port) in ports[host]
