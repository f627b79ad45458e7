"""Draw the accuracies of a campaign's runs: figure.py CAMPAIGN OUT.svg."""

import sys
from html import escape
from pathlib import Path
from statistics import fmean

from recipe.study.campaign_results import CampaignResult, read_results_of

LEFT, TOP, WIDTH, ROW, GAP = 130, 46, 320, 21, 40  # pixels: of the names, the head, a panel


def figure(result: CampaignResult) -> str:
    """Return an SVG: a panel for each data source, a row for each arm, best first.

    A ring is a seed, a dot the mean of an arm's seeds.
    """
    sources = sorted(result.sources, reverse=True)  # hard before easy
    shares = {
        (arm, source): [
            fmean(run.kept["means"][source]["accuracy"].values()) for run in runs.values()
        ]
        for arm, runs in result.seeds.items()
        for source in sources
    }
    arms = sorted(result.seeds, key=lambda arm: -fmean(shares[arm, sources[0]]))
    bottom = TOP + ROW * len(arms)
    size = f"0 0 {LEFT + len(sources) * (WIDTH + GAP)} {bottom + 34}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="Accuracy of each arm on held-out problems">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for at, arm in enumerate(arms):
        weight = ' font-weight="bold"' if arm.startswith("sage") else ""
        lines.append(_text(LEFT - 12, TOP + ROW * at + 15, escape(arm), "end", weight))
    for number, source in enumerate(sources):
        x0 = LEFT + number * (WIDTH + GAP)
        most = int(10 * max(max(shares[arm, source]) for arm in arms)) + 1
        lines.append(_text(x0, 18, f"{escape(source)}, % right; ring: a seed, dot: mean"))
        for tick in range(most + 1):
            x = f"{x0 + tick / most * WIDTH:.1f}"
            lines.append(f'<path d="M{x} {TOP}V{bottom}" stroke="#ddd"/>')
            lines.append(_text(x, bottom + 16, f"{10 * tick}", "middle"))
        for at, arm in enumerate(arms):
            color = "#2a7a3b" if arm.startswith("sage") else "#555"
            found = shares[arm, source]
            marks = [*((each, f'fill="none" stroke="{color}"') for each in found)]
            for share, style in [*marks, (fmean(found), f'fill="{color}"')]:
                x, y = f"{x0 + share * 10 / most * WIDTH:.1f}", TOP + ROW * at + 11
                lines.append(f'<circle cx="{x}" cy="{y}" r="4" {style}/>')
    return "\n".join([*lines, "</svg>", ""])


def _text(x: float | str, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{more}>{text}</text>'


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(figure(read_results_of(sys.argv[1])), encoding="utf-8")
