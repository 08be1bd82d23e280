"""Random command lines: tables, model files and arguments that are damaged by a seed."""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Case", "case_of", "fill", "good_table"]

CELLS = (
    "", " ", "NA", "nan", "inf", "-inf", "1e999", "1e308", "-0", "0x1F", "1_000", "\u0661", "50%",
    "2024-02-30", "2024-02-29", "31.12.1999", "1,5", "007", "true", "=1+1", "'", '"', '""',
    "\x1b[31m",
    "\u202e", "<script>", "x" * 2000, "\ufeff", "\x0b", "\u2028", "9" * 30, "None", "__proto__",
    "é",
)  # fmt: skip
WORDS = (
    "", "-", "--", "0", "-1", "1", "2", "0.5", "nan", "inf", "1e9", "a", "kind", "y", "nope",
    "tree",
    "svm", "iris", "regression", "classification", "a=number", "kind=number", "a=text", "=", "a=",
    "y=category", "y=ignored", "C=1", "max_depth=2", "max_depth=__import__('os')", "max_depth=[1",
    "criterion=gini", "criterion=1", "min_samples_leaf=0", "max_leaf_nodes=1", "ccp_alpha=1e400",
    "accuracy", "r2", "roc_auc", "f1", "table.csv", "model.margrove", ".", "none/x.csv", "out.csv",
    "é", "\x1b[31m", "a\nb", "\udcff", "x" * 300, "parquet", "jsonl", "--quiet", "--json",
    "--force",
)  # fmt: skip
COLUMNS = (
    ("1e308", "-1e308", "0"), ("1e-320", "0", "1"), ("9007199254740993", "9007199254740992"),
    ("0", "1"), ("true", "false"), ("True", "False", ""), ("1", "1.0", "2"), ("-0", "0", "1"),
    ("", "", "", "", "x"), ("", "", "", "", "1"), ("2024-01-01", "1600-01-01", "9999-12-31"),
    ("2024-01-01T00:00:00+14:00", "2024-01-01T00:00:00Z"), ("01/02/2024", "02/01/2024"),
    ("a", "A", " a", "a "), ("=1", "+1", "@x"), ("a b c d", "b c d e f", "c d e f g h"),
    ("\u0130", "i", "I", "\u0131"), ("e\u0301", "\u00e9"), ("\x1b[31mx", "\u202ex"), ("1,5",
    "2,25"),
    ("<script>alert(1)</script>", "</style>"), tuple("abcdefghijklmnopqrstuvwxyz"),
    tuple(map(str, range(40))), ("1e999", "1"), ("007", "008"), ("(other)", "nan ", "missing"),
    ("a\nb", "c"), ("a,b", "c;d"), ('say "x"', "y"), ("99999999999999999999", "1"),
)  # fmt: skip
OPTIONS = (
    "--target", "--task", "--id", "--ignore", "--type", "--data", "--folds", "--test-size",
    "--score",
    "--seed", "--jobs", "--param", "--confidence", "--no-probabilities", "--raw-csv", "--format",
    "--row", "--top", "--no-tune", "--model", "-o", "--quiet", "--json", "--force", "--help",
)  # fmt: skip
QUICK = ("--learner", "tree", "--max-time", "1", "--jobs", "1")
COMMANDS: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "TABLE", *QUICK, "--folds", "2"),
    "compare a part": ("compare", "TABLE", *QUICK, "--test-size", "0.3", "--json"),
    "fit": ("fit", "TABLE", *QUICK, "-o", "out.margrove"),
    "fit a choice": ("fit", "TABLE", *QUICK, "--tune", "--test-size", "0", "--quiet"),
    "fit an id": ("fit", "TABLE", "--id", "id", "--target", "y", *QUICK, "--param", "max_depth=2"),
    "tune": ("tune", "TABLE", *QUICK, "--seed", "3", "--json"),
    "predict": ("predict", "MODEL", "TABLE", "-o", "out.csv", "--quiet"),
    "predict an id": ("predict", "MODEL", "TABLE", "--id", "id", "--format", "jsonl"),
    "explain": ("explain", "MODEL", "TABLE", "--row", "3", "--json"),
    "explain alone": ("explain", "MODEL", "--top", "3"),
    "report a model": ("report", "TABLE", "--model", "MODEL", "-o", "out.html", "--quiet"),
    "doctor": ("doctor", "TABLE", "--no-estimate"),
    "doctor a task": ("doctor", "TABLE", "--no-estimate", "--folds", "3", "--json"),
    "inspect": ("inspect", "MODEL", "--json"),
    "datasets": ("datasets", "iris", "-o", "out.parquet"),
    "datasets alone": ("datasets", "--json"),
}


def good_table(task: str = "classification", n_rows: int = 24) -> str:
    """Numbers with a missing value, categories, dates and an id; the last column is the target."""
    lines = ["id,a,b,kind,day,y"]
    for k in range(n_rows):
        gap = "" if k % 7 == 3 else f"{(k * 37 % 19) / 4}"
        kind = ("red", "green", "blue")[k * k % 3]
        y = ("yes" if k * 37 % 19 > 8 else "no") if task == "classification" else f"{k * 1.37:.3f}"
        lines.append(f"r{k},{gap},{k % 5},{kind},2024-0{1 + k % 9}-15,{y}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Case:
    """The files of a folder, and a command line that runs in it."""

    arguments: tuple[str, ...]
    files: dict[str, bytes]


def case_of(seed: int, models: Sequence[bytes]) -> Case:
    """The case of a seed; `models` are valid model files, some of which get damaged."""
    chance = random.Random(seed)
    template = COMMANDS[chance.choice(list(COMMANDS))]
    table_name, table = _table(chance)
    model = chance.choice(models)
    if chance.random() < 0.15:
        model = _bent_bytes(model, chance)
    words = {"TABLE": table_name, "MODEL": "model.margrove"}
    arguments = [words.get(word, word) for word in template]
    while chance.random() < 0.35:
        _bend_arguments(arguments, chance)
    return Case(tuple(arguments), {table_name: table, "model.margrove": model})


def _table(chance: random.Random) -> tuple[str, bytes]:
    task = chance.choice(("classification", "classification", "regression"))
    text = good_table(task, chance.choice((1, 2, 5, 24, 24, 24)))
    while chance.random() < 0.5:
        text = chance.choice(TEXT_CHANGES)(text, chance)
    data = text.encode(errors="surrogatepass")
    if chance.random() < 0.1:
        data = chance.choice((_bent_bytes, _encoded))(data, chance)
    name = chance.choice(("table.csv",) * 8 + ("table", "table.tsv"))
    if chance.random() < 0.1:
        return f"{name}.gz", gzip.compress(data, mtime=0)
    if chance.random() < 0.05:
        return chance.choice(("table.parquet", "table.jsonl", "table.csv.zst", "table.xls")), data
    return name, data


# -- changes of a text --


def _other_cell(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    row = chance.randrange(len(lines))
    cells = lines[row].split(",")
    cells[chance.randrange(len(cells))] = chance.choice(CELLS)
    lines[row] = ",".join(cells)
    return "\n".join(lines)


def _other_column(text: str, chance: random.Random) -> str:
    """All cells of a column by a simple rule: constant, or all different."""
    place = chance.randrange(6)
    choices = chance.sample(CELLS, chance.choice((1, 2, 8)))
    lines = text.split("\n")
    for row, line in enumerate(lines[1:], start=1):
        cells = line.split(",")
        if place < len(cells):
            cells[place] = chance.choice(choices)
            lines[row] = ",".join(cells)
    return "\n".join(lines)


def _odd_column(text: str, chance: random.Random) -> str:
    """A column that can be read, with values that are difficult for later steps."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    place, values = chance.randrange(6), chance.choice(COLUMNS)
    for k, row in enumerate(rows[1:]):
        if place < len(row):
            row[place] = values[k % len(values)] if chance.random() < 0.9 else values[0]
    return _written(rows)


def _odd_names(text: str, chance: random.Random) -> str:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if rows and rows[0]:
        rows[0][chance.randrange(len(rows[0]))] = chance.choice((*CELLS, *WORDS))
    return _written(rows)


def _written(rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _without_column(text: str, chance: random.Random) -> str:
    place = chance.randrange(6)
    rows = [line.split(",") for line in text.split("\n")]
    return "\n".join(",".join(row[:place] + row[place + 1 :]) for row in rows)


def _other_delimiter(text: str, chance: random.Random) -> str:
    return text.replace(",", chance.choice((";", "\t", "|", ", ", ":", " ")))


def _other_lines(text: str, chance: random.Random) -> str:
    return text.replace("\n", chance.choice(("\r\n", "\r", "\n\n", "\n \n", "\x00\n", "\u2028")))


def _cut(text: str, chance: random.Random) -> str:
    start, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return text[:start] + text[end:] if chance.random() < 0.5 else text[start:end]


def _repeated(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    return "\n".join([*lines, *chance.choices(lines, k=5)])


def _inserted(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(CELLS) + text[place:]


TEXT_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _other_cell, _other_cell, _odd_column, _odd_column, _odd_column, _odd_names, _other_column,
    _without_column, _other_delimiter, _other_lines, _cut, _repeated, _inserted,
)  # fmt: skip


# -- changes of bytes and of arguments --


def _bent_bytes(data: bytes, chance: random.Random) -> bytes:
    bent = bytearray(data)
    for _ in range(chance.choice((1, 3, 20))):
        if bent:
            bent[chance.randrange(len(bent))] = chance.randrange(256)
    return bytes(bent[: chance.choice((len(bent), len(bent), len(bent) // 2, 3))])


def _encoded(data: bytes, chance: random.Random) -> bytes:
    text = data.decode(errors="replace")
    return text.encode(chance.choice(("utf-16", "latin-1", "utf-8-sig", "utf-32")), "replace")


def _bend_arguments(arguments: list[str], chance: random.Random) -> None:
    place = chance.randrange(1, len(arguments) + 1)
    change = chance.randrange(4)
    if change == 0 and place < len(arguments) and arguments[place] != "tree":
        arguments[place] = chance.choice(WORDS)
    elif change == 1:
        arguments[place:place] = [chance.choice(OPTIONS), chance.choice(WORDS)]
    elif change == 2:
        arguments[place:place] = [chance.choice(OPTIONS)]
    elif place < len(arguments) and not {"--learner", "tree"} & set(arguments[place - 1 :][:2]):
        del arguments[place]


def fill(folder: Path, case: Case) -> None:
    """Put the files of a case into a folder."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
