"""What a run's processes wrote into Ray's folder of logs: kept with the run, and searched."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import shorten

# Names that Ray gives to files of its log folder.
_WORKER_FILE = re.compile(r"worker-(?P<worker>[0-9a-f]{56})-(?P<job>[0-9a-f]{8})-")
_WORKER_ID = re.compile(r"[0-9a-f]{56}")
_NAMED_JOB = re.compile(r"(?:python-core-driver|runtime_env_setup)-(?P<job>[0-9a-f]{8})")
# A line of vLLM's engine, or of one of its workers, that ends a traceback.
_RAISED = re.compile(
    r"^\((?:EngineCore|Worker)[^)]*\) (?:(?:\x1b\[[0-9;]*m)?ERROR[^\]]*\](?:\x1b\[[0-9;]*m)? )?"
    r"(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Timeout)(?:: .*)?)$"
)
_LONGEST = 600
_FIRST_JOB, _NO_JOB = "01000000", "ffffffff"


def keep_logs(session: Path, target: Path, job: str) -> None:
    """Copy what Ray wrote for one job; a cluster's folder holds the output of all its jobs.

    Ray's own output, of the node and its services, is kept with the first job, which is the run's
    if it started the cluster. On a shared cluster that output can be of any size and age.

    Args:
        session: Ray's folder of logs on this machine.
        target: Where they go.
        job: Ray's id of the job.
    """
    for folder in (session, session / "old"):  # where Ray moves files of processes that ended
        files = [path for path in folder.glob("*") if path.is_file()]
        matches = (_WORKER_FILE.match(path.name) for path in files)
        jobs = {match["worker"]: match["job"] for match in matches if match}
        for path in files:
            owner = _job_of(path.name, jobs)
            if owner == job or (owner is None and job == _FIRST_JOB):
                to = target / path.relative_to(session)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, to)


def engine_error(session: Path, job: str) -> str | None:
    """Tell the first error that a vLLM engine or a worker of it wrote, if any did.

    vLLM raises in the server only that the engine failed; the reason is in the engine's output.

    Args:
        session: Ray's folder of logs on this machine; other machines' engines are not found.
        job: Ray's id of the job.
    """
    for kind in ("out", "err"):
        for path in sorted(session.rglob(f"worker-*-{job}-*.{kind}")):
            with path.open(encoding="utf-8", errors="replace") as lines:
                found = (_RAISED.match(line) for line in lines)
                if match := next(filter(None, found), None):
                    error = shorten(match["error"], _LONGEST, placeholder=" ...")
                    return f"vLLM's engine failed: {error}"
    return None


def _job_of(name: str, jobs: dict[str, str]) -> str | None:
    """Return the job that a file belongs to, or ``None`` where it is the node's."""
    worker = _WORKER_ID.search(name)
    if worker and worker[0] in jobs:
        job = jobs[worker[0]]
        return None if job == _NO_JOB else job
    named = _NAMED_JOB.match(name)
    return named["job"] if named else None
