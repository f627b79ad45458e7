"""Programs refuse what they were given before they load what takes long, in one line."""

import subprocess
import sys

from ends import code_of

from recipe.hint import main_export


def told(end, capsys):
    out, err = capsys.readouterr()
    assert (end, out, err.count("\n")) == (2, "", 1)
    return err


def test_an_export_names_what_is_not_there_and_what_is(tmp_path, capsys):
    gone, here = str(tmp_path / "gone"), str(tmp_path)
    assert f"{gone} is not a checkpoint" in told(code_of(main_export.main, [gone, gone]), capsys)
    end = code_of(main_export.main, [here, here])
    assert f"{here} already exists; give a new folder" in told(end, capsys)


def test_help_and_refusals_of_a_command_load_no_torch():
    script = (
        "import sys\n"
        "from recipe.hint import main_export\n"
        "try:\n"
        "    main_export.main(['/nonexistent', 'out'])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 2\n"
        "assert 'torch' not in sys.modules\n"
    )
    end = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert end.returncode == 0, end.stderr
