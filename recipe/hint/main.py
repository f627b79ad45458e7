"""The command ``hint``: one name for the files main_*.py, which read the words behind it."""

import difflib
import importlib
import re
import sys

_HELP = """\
usage: hint COMMAND ...   (hint COMMAND --help says more)

Before a run
  prepare    make a data file, hints or a model folder from what you have
  check      check settings, data, model and machine; start nothing

Runs
  warmup     train a base model on worked solutions first
  train      train a policy with hints
  alternate  train a solver and a guide in turns
  campaign   train and evaluate several methods and seeds

Results
  eval       evaluate a model or a checkpoint
  ask        ask a model one problem
  grade      grade responses made elsewhere
  report     make pages and tables of runs, or serve them live
  export     write a checkpoint as a model, or an evaluation as a log

Development
  tiny       rebuild an embedded world"""
COMMANDS = re.findall(r"^  (\w+)", _HELP, re.MULTILINE)
# What main_hint.py does by one of its settings.
OF_HINT = {"train": [], "eval": ["trainer.eval_only=true"], "check": ["preflight_only=true"]}


def main() -> int | None:
    """Run the subcommand that the first word names; a wrong one ends with code 2."""
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help", "help"):
        from rich.console import Console  # leaves the colours out where none are wanted

        text = re.sub(r"(?m)^(\w.*)", r"[bold]\1[/]", _HELP)
        return Console(highlight=False).print(re.sub(r"(?m)^(  \w+)", r"[cyan]\1[/]", text))
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        told = f"did you mean {near[0]}?" if near else "`hint --help` lists them"
        sys.stderr.write(f"hint: {name!r} is no command; {told}\n")
        return 2
    sys.argv = [f"hint {name}", *(w for w in words if (name, w) != ("train", "--yes"))]
    sys.argv += OF_HINT.get(name, [])
    module = importlib.import_module(f"recipe.hint.main_{'hint' if name in OF_HINT else name}")
    return module.main() if words or name != "train" else module.show_default_run()
