"""The command ``hint``: one name for the files main_*.py, which read the words behind it."""

from __future__ import annotations

import difflib
import importlib
import sys

# Subcommand -> the file main_*.py behind it, the setting that it adds, and its line of the help.
_GROUPS = {
    "Before a run": {
        "prepare": ("prepare", "", "make a data file, hints or a model folder from what you have"),
        "check": ("hint", "preflight_only=true", "check settings, data, model and machine"),
    },
    "Runs": {
        "warmup": ("warmup", "", "train a base model on worked solutions first"),
        "train": ("hint", "", "train a policy with hints"),
        "alternate": ("alternate", "", "train a solver and a guide in turns"),
        "campaign": ("campaign", "", "train and evaluate several methods and seeds"),
    },
    "Results": {
        "eval": ("hint", "trainer.eval_only=true", "evaluate a model or a checkpoint"),
        "ask": ("ask", "", "ask a model one problem"),
        "grade": ("grade", "", "grade responses made elsewhere"),
        "report": ("report", "", "make pages and tables of runs, or serve them live"),
        "export": ("export", "", "write a checkpoint as a model folder"),
    },
    "Development": {"tiny": ("tiny", "", "rebuild an embedded world")},
}
COMMANDS = {name: each for group in _GROUPS.values() for name, each in group.items()}


def main() -> int | None:
    """Run the subcommand that the first word names; a wrong one ends with code 2."""
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help", "help"):
        return _help()
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        told = f"did you mean {near[0]}?" if near else "`hint --help` lists them"
        if "=" in name:
            told = "settings go behind one, as in `hint train NAME=VALUE`"
        sys.stderr.write(f"hint: {name!r} is no command; {told}\n")
        return 2
    file, setting, _ = COMMANDS[name]
    sys.argv = [f"hint {name}", *words, *filter(None, [setting])]
    module = importlib.import_module(f"recipe.hint.main_{file}")
    if name == "train":
        sys.argv = [word for word in sys.argv if word != "--yes"]
        return module.main() if words else module.show_default_run()
    return module.main()


def _help() -> None:
    """Print a line for each subcommand; rich leaves the colours out where none are wanted."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print("usage: [bold]hint COMMAND[/] ...   [dim]hint COMMAND --help says more[/]")
    for title, group in _GROUPS.items():
        console.print(f"\n[bold]{title}[/]")
        for name, (*_, told) in group.items():
            console.print(f"  [cyan]{name:10}[/] {told}")
