"""A campaign's folder: read its finished runs, and keep of them what the page reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf
from pydantic import TypeAdapter, ValidationError

from recipe.run.errors import ConfigError, DataError
from recipe.run.whole_file import write_whole
from recipe.study.campaign import CAMPAIGN_FILE, RESULTS, kept_file, read_campaign
from recipe.study.report.campaign import CampaignResult
from recipe.study.report.campaign_run import MoreMeasures, kept_text, read_kept, read_seed
from recipe.study.report.page.folder import PageRun, read_folder

_LOST_FILE = "lost.json"  # run -> what became of it, of those that did not finish
_NOT_RUN = "not run"
_NO_MORE: MoreMeasures = {}


def read_results_of(folder: str | Path, more: MoreMeasures = _NO_MORE) -> CampaignResult:
    """Read the finished runs of a campaign's folder, and of each ``more`` measures.

    Raises:
        DataError: If a finished run cannot be read, or what was kept of one, or none is finished,
            or two were evaluated on different files of one name.
        ConfigError: If the folder has no campaign's file, a damaged one, or a run that is not one
            of the campaign's; or if a claim is about a source or measure that no run has.
    """
    folder = Path(folder)
    result = CampaignResult(read_campaign(folder / CAMPAIGN_FILE))
    lost = _read_lost(folder)
    _check_known(folder, {run.name for run in result.campaign.runs()})
    for run in result.campaign.runs():
        place = folder / run.name
        run.check_made(place)
        if (place / RESULTS).is_file():
            found = read_seed(place, run, more)
        elif kept_file(place).is_file():
            found = read_kept(kept_file(place), run)
        else:
            result.missing.append((run, lost.get(run.name) or _unfinished(place)))
            continue
        if found.sampling.get("seed") not in (None, run.seed):
            raise DataError(
                f"{place} was evaluated with seed {found.sampling['seed']}, expected its own, "
                f"{run.seed}; evaluate it again"
            )
        result.seeds.setdefault(run.arm, {})[run.seed] = found
    result.check_problems()
    result.check_claims()
    if not result.seeds:
        raise DataError(f"{folder} has no finished run; make them with main_campaign.py")
    # In the order of the file, whichever was finished first.
    order = [name for name in result.campaign.arms if name in result.seeds]
    result.seeds = {name: dict(sorted(result.seeds[name].items())) for name in order}
    return result


def read_runs(folder: str | Path) -> list[PageRun]:
    """Read the run of a folder, or those that a campaign's folder has: begun, finished or kept.

    Raises:
        DataError: If there is none, or what was kept of one is damaged.
        ConfigError: If the campaign's file is damaged.
    """
    folder, found = Path(folder), []
    if not (folder / CAMPAIGN_FILE).is_file():
        return [read_folder(folder)]
    for run in read_campaign(folder / CAMPAIGN_FILE).runs():
        place = folder / run.name
        if (place / "metrics.jsonl").is_file():
            found.append(read_folder(place))
        elif kept_file(place).is_file():
            kept, config = read_kept(kept_file(place), run).training, OmegaConf.create({})
            for setting in run.settings:
                name, _, value = setting.lstrip("+").partition("=")
                OmegaConf.update(config, name, value)
            kept.config = cast("dict[str, Any]", OmegaConf.to_container(config))
            found.append(kept)
    if not found:
        raise DataError(f"{folder} has no run yet; make them with main_campaign.py")
    return found


def keep_results(
    folder: str | Path,
    output: Path,
    more: MoreMeasures = _NO_MORE,
    *,
    should_replace: bool = False,
) -> CampaignResult:
    """Write what the page reads of each finished run to a file of its own in another folder.

    The page of that folder is the same, and a campaign there goes on with what is missing. What
    became of runs that did not finish is kept too, so that nobody takes them for never begun.

    Args:
        folder: A campaign's.
        output: Holds ``campaign.yaml``, ``ARM/seed-N.json`` and ``lost.json`` afterwards. A
            campaign that is there stays: it may have more arms.
        more: Further measures of each run.
        should_replace: Whether a run that was kept with other numbers gives way.

    Raises:
        DataError: As :func:`read_results_of`, or if a run was kept with other numbers.
        ConfigError: As :func:`read_results_of`, or if ``output`` has a campaign without a finished
            run, or the file of another run.
        OSError: If the disk refuses.
    """
    result, there = read_results_of(folder, more), output / CAMPAIGN_FILE
    wanted = (read_campaign(there) if there.exists() else result.campaign).runs()
    for run in result.campaign.runs():
        if found := result.seeds.get(run.arm, {}).get(run.seed):
            if run not in wanted:
                raise ConfigError(
                    f"{there} has no run {run.name} with its settings; change it first"
                )
            run.check_made(output / run.name)
            path = kept_file(output / run.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = kept_text(found, run)
            is_other = path.exists() and read_kept(path, run).numbers() != found.numbers()
            if is_other and not should_replace:
                raise DataError(
                    f"{path} was kept with other numbers than {folder} has; give --replace if "
                    f"these are to take their place"
                )
            write_whole(path, text)
    lost = {run.name: what for run, what in result.missing if what != _NOT_RUN}
    lost = {
        name: what
        for name, what in (_read_lost(output) | lost).items()
        if not kept_file(output / name).is_file()
    }
    if lost:
        write_whole(output / _LOST_FILE, json.dumps(lost, indent=1) + "\n")
    else:
        (output / _LOST_FILE).unlink(missing_ok=True)
    if not there.exists():
        write_whole(there, (Path(folder) / CAMPAIGN_FILE).read_text(encoding="utf-8"))
    return result


def _check_known(folder: Path, names: set[str]) -> None:
    """Refuse results of a seed or an arm that the campaign does not name: none is left out."""
    found = [*folder.glob("*/seed-*.json")]
    found += [path.parents[1] for path in folder.glob(f"*/seed-*/{RESULTS}")]
    for path in sorted(found):
        if (name := f"{path.parent.name}/{path.name.removesuffix('.json')}") not in names:
            raise ConfigError(
                f"{path} is the result of {name}, no run of the campaign; name its arm and seed "
                f"in {CAMPAIGN_FILE}, or move it away"
            )


def _read_lost(folder: Path) -> dict[str, str]:
    """Return what was kept of runs that did not finish.

    Raises:
        DataError: If that file is damaged.
    """
    path = folder / _LOST_FILE
    if not path.exists():
        return {}
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        raise DataError(f"{path} must hold texts by the names of runs: {error}") from error


def _unfinished(place: Path) -> str:
    """Return what became of a run that is not finished."""
    if not (place / "metrics.jsonl").is_file():
        return _NOT_RUN
    training = read_folder(place, with_visits=False)
    why = " ".join(training.failure.split())[:200]
    end = f", ended by: {why}" if why else ""
    return f"at step {training.last_step}{end}"
