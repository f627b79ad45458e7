"""Files of every form for tests, the golden rows of the hub among them; and the command."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.hint import main_prepare

GOLDEN = Path(__file__).parents[2] / "golden" / "hub"
SETS = json.loads((GOLDEN / "sources.json").read_text("utf-8"))


def lay_out(name, folder):
    """The files of one source in ``folder``, and the folder."""
    for file, rows in SETS[name]["files"].items():
        write(folder / file, rows)
    return folder


def write(path, rows):
    """By the ending: JSON lines, JSON, CSV, TSV or parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form = path.suffix[1:]
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    with path.open("w", newline="", encoding="utf-8") as file:
        if form in ("csv", "tsv"):
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if form == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
        elif form == "json":
            json.dump(rows, file)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def prepare(*arguments):
    main_prepare.main([str(argument) for argument in arguments])
