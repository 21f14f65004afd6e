"""Stage of a shared job: a hidden directory of the dataset, local or remote."""

from __future__ import annotations

import os

from numparq.dataset.commit.local_stage import LocalStage
from numparq.dataset.commit.record import new_job_id
from numparq.dataset.commit.remote_stage import RemoteStage
from numparq.dataset.commit.stage import Stage
from numparq.dataset.commit.stream_batch import StreamBatch
from numparq.io.filesystem import ResolvedPaths

from .existing_data import check_keeps_nothing


def begin_stage(
    folder: ResolvedPaths, outlives: bool, excludes_others: bool, keep_seconds: float, batch: StreamBatch | None
) -> Stage:
    """Begin the stage of a write, or of a stream's batch, which several processes begin."""
    (base,) = folder.paths
    job = new_job_id() if batch is None else batch.job
    if folder.filesystem is None:
        is_shared = batch is not None
        return LocalStage.begin(os.path.abspath(base), job, outlives or is_shared, keep_seconds, exist_ok=is_shared)
    check_keeps_nothing(keep_seconds)
    return RemoteStage(folder.filesystem, base.rstrip("/"), folder.display_name, excludes_others, job)
