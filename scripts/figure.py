"""Draw a kept campaign's accuracies with their intervals: figure.py EVIDENCE OUT.svg."""

import sys
from html import escape
from pathlib import Path

from recipe.study.campaign_results import CampaignResult, read_results_of

LEFT, TOP, WIDTH, ROW, GAP = 130, 46, 320, 21, 40  # pixels: of the names, the head, a panel


def figure(result: CampaignResult) -> str:
    """Return an SVG: a panel for each data source, a row for each arm, best first."""
    sources, arms = sorted(result.sources, reverse=True), [*result.seeds]  # hard before easy
    found = {
        (arm, source): result.estimate(arm, source, "accuracy")
        for arm in arms
        for source in sources
    }
    arms.sort(key=lambda arm: -(found[arm, sources[0]] or (0.0,))[0])
    bottom = TOP + ROW * len(arms)
    size = f"0 0 {LEFT + len(sources) * (WIDTH + GAP)} {bottom + 34}"
    label = "Accuracy of each arm on held-out problems, with 95 % intervals"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{label}">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for at, arm in enumerate(arms):
        weight = ' font-weight="bold"' if arm.startswith("sage") else ""
        lines.append(_text(LEFT - 12, TOP + ROW * at + 15, escape(arm), "end", weight))
    for number, source in enumerate(sources):
        x0 = LEFT + number * (WIDTH + GAP)
        top = max(each.high for arm in arms if (each := found[arm, source]))
        ticks = [each / 10 for each in range(int(top * 10) + 2)]
        scale = WIDTH / ticks[-1]
        lines.append(_text(x0, 18, f"{escape(source)}, % right without hints", "start", ""))
        for tick in ticks:
            x = f"{x0 + tick * scale:.1f}"
            lines.append(f'<path d="M{x} {TOP}V{bottom}" stroke="#ddd"/>')
            lines.append(_text(x, bottom + 16, f"{100 * tick:.0f}", "middle", ""))
        for at, arm in enumerate(arms):
            if not (each := found[arm, source]):
                continue
            y = TOP + ROW * at + 11
            mean, low, high = (x0 + share * scale for share in each)
            color = "#2a7a3b" if arm.startswith("sage") else "#555"
            lines.append(
                f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{color}" stroke-width="2"/>'
                f'<circle cx="{mean:.1f}" cy="{y}" r="4" fill="{color}"/>'
            )
    return "\n".join([*lines, "</svg>", ""])


def _text(x: float | str, y: float, text: str, anchor: str, more: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{more}>{text}</text>'


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(figure(read_results_of(sys.argv[1])), encoding="utf-8")
