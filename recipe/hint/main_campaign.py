"""Make the runs of a campaign: ``main_campaign.py CAMPAIGN.yaml -o DIR [--jobs N] [--only ARM]``.

Each run trains, exports the weights of its last step and evaluates them, in DIR/ARM/seed-N. After
an interruption, run the same command again: finished runs stay, and a run that was killed or failed
resumes from its newest checkpoint, or starts over if there is none. Then
``main_report.py campaign DIR -o results.md`` makes the page.

If a run fails, the others are still made; the exit code is 2, with one line.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from recipe import PROGRAMS
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError
from recipe.study.campaign import read_campaign
from recipe.study.campaign_runs import Driver, Job, check_claims, jobs_of, keep_file

_CHECK_S = 1800.0


@errors_in_one_line(after_interrupt="; the same command continues")
def main(argv: list[str] | None = None) -> int:
    """Make, list or check the runs."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "campaign", type=Path, help="the YAML file, such as configs/campaign/*.yaml"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, on CPUs (default: 1)")
    parser.add_argument("--only", action="append", default=[], metavar="ARM", help="repeatable")
    parser.add_argument("--dry-run", action="store_true", help="list the runs and what each needs")
    parser.add_argument(
        "--check", action="store_true", help="check each arm's settings; start none"
    )
    given = parser.parse_args(argv)
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: it must be at least 1")
    if given.output.exists() and not given.output.is_dir():
        raise ConfigError(f"-o {given.output} is a file; give a folder, which need not exist")
    campaign = read_campaign(given.campaign)
    jobs = jobs_of(campaign, given.output, PROGRAMS, given.only)
    if given.dry_run:
        for job in jobs:
            print(f"{job.run.name}: {job.state()}: {' '.join(job.run.settings)}")
        return 0
    check_claims(campaign, jobs, given.campaign)
    if given.check:
        return _check(jobs)
    keep = functools.partial(keep_file, campaign, given.campaign, given.output)
    Driver(given.output, given.jobs, _say).make(jobs, keep)
    print(f"done: python recipe/hint/main_report.py campaign {given.output} -o results.md")
    return 0


def _check(jobs: Sequence[Job]) -> int:
    """Run each arm's own checks, with its first seed."""
    firsts: dict[str, Job] = {}
    for job in jobs:
        firsts.setdefault(job.run.arm, job)
    failed = 0
    for arm, job in firsts.items():
        why = next(filter(None, map(_refusal, job.checks())), "")
        failed += bool(why)
        print(f"{arm}: {why or 'ok'}", flush=True)
    if failed:
        print(f"error: {failed} of {len(firsts)} arms cannot start", file=sys.stderr)
    return 2 if failed else 0


def _refusal(arguments: Sequence[str]) -> str:
    """Return why a check failed, or nothing."""
    command = [sys.executable, *arguments]
    try:
        end = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_CHECK_S)
    except subprocess.TimeoutExpired:
        return f"its check did not end within {_CHECK_S:g} s"
    said = (end.stderr.strip() or end.stdout.strip() or "nothing").splitlines()
    return said[-1] if end.returncode else ""


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
