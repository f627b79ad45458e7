"""The curves of the HTML page, and how sure they are."""

import pytest
from page_runs import metrics, write_run

from recipe.study.report.page import charts
from recipe.study.report.page.arms import group_arms
from recipe.study.report.page.charts import all_charts
from recipe.study.report.page.folder import read_folder


def test_a_curve_of_two_seeds_is_their_mean_with_students_interval(tmp_path):
    one = write_run(tmp_path / "one", rows=[metrics(1, 0.49)], seed=1)
    two = write_run(tmp_path / "two", rows=[metrics(1, 0.51)], seed=2)
    chart = all_charts(group_arms([read_folder(one), read_folder(two)]))[0]
    band, line = chart.figure.data
    # s = 0.01414, over sqrt(2): 0.01; Student's t of 1 degree: 12.706; 0.5 +- 0.12706
    assert line.y == (0.5,)
    assert band.y == pytest.approx((0.62706, 0.37294), abs=1e-4)
    assert chart.by_axis["tokens sampled (thousands)"][1] == [1.0]
    assert chart.by_axis["minutes of training"][1] == [0.05]


@pytest.mark.parametrize(
    ("accuracies", "num_problems", "band"),
    [
        ((0.2, 0.8), 0, (1.0, 0.0)),  # Student: 0.5 +- 3.8
        ((0.0, 0.0), 200, (0.01885, 0.0)),  # Wilson for 0 of 200: z^2 / (200 + z^2), z = 1.96
        ((0.5, 0.5), 200, (0.5686, 0.4314)),  # Wilson for 0.5 of 200: 0.5 +- 0.0686
    ],
)
def test_an_accuracy_of_several_seeds_is_a_share_and_no_surer_than_its_problems_allow(
    tmp_path, monkeypatch, accuracies, num_problems, band
):
    monkeypatch.setattr(charts, "_num_problems", lambda run, source: num_problems)
    runs = [
        read_folder(write_run(tmp_path / str(seed), rows=[metrics(1, value)], seed=seed))
        for seed, value in enumerate(accuracies, 1)
    ]
    [shaded, _] = all_charts(group_arms(runs))[0].figure.data
    assert shaded.y == pytest.approx(band, abs=1e-4)
