"""Labels of Jobs that were given none: those of their pods."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json

_OF_PODS = {
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "batch.kubernetes.io/job-name",
}


def labels_of_template(job: Json) -> bool:
    """Whether a Job has the labels of its pods because it was given none: they are not stored with it."""
    template = (job.get("spec") or {}).get("template") or {}
    labels = job["metadata"].get("labels")
    # Where its pods had labels of their own, they were the Job's from the beginning, and are stored.
    return (
        bool(labels)
        and labels.keys() == _OF_PODS
        and labels == (template.get("metadata") or {}).get("labels")
    )


def keep_labels_of_template(new: Json, old: Json) -> None:
    """Gives a Job without labels those of its pods, also after a write of its status took them away."""
    labels = (((old.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not new["metadata"].get("labels"):
        new["metadata"]["labels"] = dict(labels)
