"""The generated parts of README.md and of the pages in docs/results and docs/notes, for scripts/results. docs/results/README.md describes
the markers."""
import decimal
import difflib
import glob
import json
import math
import os
import re
import shlex

BLOCK = re.compile(r"^<!-- (table|answer) ((?:[^-]|-(?!->))*) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"<!-- *(table|answer|end)\b")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PROVENANCE = [("a commit id", r"(?<![\w#/.])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])(?:[0-9a-f]{7,12}|[0-9a-f]{40})(?!\w)"),
              ("a date", r"\b20\d\d-\d\d-\d\d\b"), ("a driver's version", r"\bdriver \d+\.\d")]

WORDS = ["program", "precision", "variant", "layout", "engine", "plan", "range", "pass", "collective", "transform"]
TITLES = {"twiddle": "Twiddle", "pytorch": "PyTorch", "pytorch_ddp": "PyTorch DDP", "cudnn": "cuDNN", "cufft": "cuFFT", "fftw": "FFTW",
          "onednn": "oneDNN", "gpus=1": "1 GPU", "median_ms": "ms", "best_ms": "ms", "in_step_ms": "ms"}
NETWORKS = {"alexnet": "AlexNet", "alexnet_two_towers": "AlexNet, two towers", "overfeat_fast": "OverFeat fast",
            "overfeat_accurate": "OverFeat accurate", "vgg_a": "VGG-A", "vgg_e": "VGG-E", "mathieu": "Mathieu et al.",
            "resnet18": "ResNet-18", "resnet50": "ResNet-50", "googlenet": "GoogLeNet", "convnext_t": "ConvNeXt-T",
            "replknet31b": "RepLKNet-31B", "lenet": "LeNet", "cifar10": "CIFAR-10"}
VALUES = {"contiguous": "NCHW", "channels_last": "NHWC", "graph": "eager in a graph", "compiled_graph": "compiled in a graph"}
OPTIONS = {"table": ["run", "rows", "columns", "titles", "value", "total", "spread", "named", "where", "bold", "name"],
           "answer": ["run", "rows", "ratio", "value", "total", "where", "text"]}


class Runs:
    """The run files of a folder, by number. Numbers keep the digits of the file."""

    def __init__(self, folder):
        self.folder, self.read = folder, {}

    def file(self, number):
        files = glob.glob(os.path.join(self.folder, f"{number:04d}-*.json"))
        if len(files) != 1:
            raise ValueError(f"run {number} has {len(files)} files")
        return files[0]

    def get(self, number):
        if number not in self.read:
            with open(self.file(number), encoding="utf-8") as text:
                self.read[number] = json.load(text, parse_float=decimal.Decimal)
            if self.read[number]["dirty"]:
                raise ValueError(f"run {number} was measured with uncommitted changes")
        return self.read[number]


def options_of(kind, text):
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or name not in OPTIONS[kind] or name in found:
            raise ValueError(f"'{word}' is not OPTION=VALUE; known options are {', '.join(OPTIONS[kind])}, each once")
        found[name] = value
    if not re.fullmatch(r"[0-9]+", found.get("run", "")):
        raise ValueError("'run' must be the number of one run: a table shows one run")
    return found


def three_digits(value):
    if value == 0 or isinstance(value, int):
        return str(value)
    if abs(value) < 1e-2:
        return f"{value:.2e}".replace("e-0", "e-")
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def derived(row):
    fields = {"images_per_gpu": row["batch"] // row["gpus"]} if "batch" in row and "gpus" in row else {}
    return {**fields, "megabytes": row["bytes"] // 1000000} if "bytes" in row else fields


def words_of(column):
    return re.split("(?<!paper):", column.partition("@")[0])


class Query:
    """Cells of the rows of a run."""

    def __init__(self, run, options):
        self.run, self.total = run, options.get("total")
        self.value = options.get("value", "median_ms").split("|")
        self.keys = options.get("rows", "").split(",")
        self.rows = [{**row, **derived(row)} for row in run["rows"]]
        for condition in filter(None, options.get("where", "").split(";")):
            field, _, values = condition.partition("=")
            self.rows = [row for row in self.rows if str(row.get(field)) in values.split("|")]

    def key_of(self, row):
        return tuple(str(row.get(field, "")) for field in self.keys)

    def text_of(self, value, field=""):
        """A number of an old run is shown as it was published, a plan as code."""
        if not isinstance(value, (int, decimal.Decimal)):
            return f"`{value}`" if value and field in ["plan", "engine"] else str(value)
        return str(value).lower() if self.run.get("old") else three_digits(value)

    def matching(self, column):
        """The rows that have all words of a column."""
        rows = self.rows
        for word in words_of(column):
            field, equals, value = word.partition("=")
            rows = [row for row in rows if (str(row.get(field)) == value if equals else word in [row.get(name) for name in WORDS])]
        if not rows:
            raise ValueError(f"no row of run {self.run['run']} has '{column}'")
        return rows

    def number_of(self, row):
        return next((row[field] for field in self.value if row.get(field) is not None), None)

    def winners(self, column):
        """By key: the fastest of the rows, or of their sums over the values of 'total', with its number; None if all failed."""
        found = {}
        for row in self.matching(column):
            part = found.setdefault(self.key_of(row), {}).setdefault(row.get("engine") if self.total else "", {})
            kind = row.get(self.total) if self.total else ""
            number = self.number_of(row)
            if kind not in part or number is not None and (part[kind][0] is None or number < part[kind][0]):
                part[kind] = (number, row)
        result = {}
        for key, parts in found.items():
            most = max(len(part) for part in parts.values())
            whole = [list(part.values()) for part in parts.values()
                     if len(part) == most and all(number is not None for number, _ in part.values())]
            sums = [(sum(number for number, _ in part), part[0][1]) for part in whole]
            result[key] = min(sums, key=lambda each: each[0]) if sums else None
        return result

    def column(self, column):
        """By key: the number, where there is one, and the cell."""
        if "/" in column:
            above, below = (self.winners(part) for part in column.split("/"))
            ratios = {key: decimal.Decimal(above[key][0]) / decimal.Decimal(below[key][0])
                      for key in above if above[key] and below.get(key)}
            return {key: (None, three_digits(ratio)) for key, ratio in ratios.items()}
        field = column.partition("@")[2]
        return {key: (None, "failed") if winner is None else
                (None, self.text_of(winner[1].get(field, ""), field)) if field else (winner[0], self.text_of(winner[0]))
                for key, winner in self.winners(column).items()}


def title_of(column):
    if "/" in column:
        return " / ".join(title_of(part) for part in column.split("/"))
    field = column.partition("@")[2]
    shown = [TITLES.get(word, word.replace("gpus=", "") + " GPUs" if word.startswith("gpus=") else word.partition("=")[2] or word)
             for word in words_of(column)]
    return " ".join(shown + [field.replace("_", " ")] * bool(field))


def bold_columns(columns):
    """Groups of columns among which the fastest is bold: those of a precision."""
    groups = {}
    for i, column in enumerate(columns):
        if "/" not in column and "@" not in column:
            groups.setdefault(next((word for word in words_of(column) if word in ["fp32", "tf32", "bf16"]), ""), []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def table_of_rows(run, options):
    query = Query(run, options)
    columns = options["columns"].split(",")
    found = [query.column(column) for column in columns]
    shown, spread, named = [], options.get("spread", "").split(","), options.get("named", "").split(",")
    order = [key for key in dict.fromkeys(map(query.key_of, query.rows)) if any(key in column for column in found)]
    for key in order:
        cells = [column.get(key, (None, ""))[1] for column in found]
        if options.get("bold") != "no" and query.value[0].endswith("_ms"):
            for group in bold_columns(columns):
                numbers = {i: found[i][key][0] for i in group if key in found[i] and found[i][key][0] is not None}
                for i in [i for i, number in numbers.items() if len(numbers) > 1 and number == min(numbers.values())]:
                    cells[i] = f"**{cells[i]}**"
        for i, column in enumerate(columns):
            winner = None if "/" in column or "@" in column else query.winners(column).get(key)
            if winner and len(spread) == 2:
                cells[i] += " ({} to {})".format(*[query.text_of(winner[1].get(field)) for field in spread])
            if winner and all(field in winner[1] for field in named):
                cells[i] += f" ({', '.join(VALUES.get(winner[1][field], winner[1][field]) for field in named)})"
        shown.append([NETWORKS.get(part, part) for part in key] + cells)
    return [field.replace("_", " ") for field in query.keys] + [title_of(column) for column in columns], shown


def table_as_stored(run, options):
    """Part of a table that an old run holds as it was published."""
    table = run.get("tables", {}).get(options["name"])
    if table is None:
        raise ValueError(f"run {run['run']} has no table '{options['name']}', only {', '.join(run.get('tables', {})) or 'none'}")
    names, rows = table["columns"], table["rows"]
    wanted = options["columns"].split(",") if "columns" in options else names
    conditions = [condition.partition("=") for condition in filter(None, options.get("where", "").split(";"))]
    missing = [name for name in wanted + [field for field, _, _ in conditions] if name not in names]
    if missing:
        raise ValueError(f"table '{options['name']}' of run {run['run']} has no column '{missing[0]}', only {', '.join(names)}")
    for field, _, values in conditions:
        rows = [row for row in rows if row[names.index(field)] in values.split("|")]
    return list(wanted), [[row[names.index(name)] for name in wanted] for row in rows]


def markdown_of(titles, rows):
    def is_number(cell):
        return re.fullmatch(r"[-*]*[\d.,]+(e[-+]?\d+)?[x%*]*( ?%)?( \([^a-z]*( to [^a-z]*)?\))?( \((eager|compiled)[^)]*\))?",
                            cell) or cell in ["", "-", "failed"]

    right = [all(is_number(row[i]) for row in rows) for i in range(len(titles))]
    lines = [titles, ["---:" if each else "---" for each in right], *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def table(run, options, link):
    if ("name" in options) == ("rows" in options) or "rows" in options and "columns" not in options:
        raise ValueError("a table needs 'rows' and 'columns', or the 'name' of a table of an old run")
    titles, rows = (table_as_stored if "name" in options else table_of_rows)(run, options)
    if "titles" in options:
        given = options["titles"].split(",")
        if len(given) != len(titles):
            raise ValueError(f"'titles' must be {len(titles)}, found {len(given)}")
        titles = given
    if not rows:
        raise ValueError(f"no row of run {run['run']} is in the table")
    machine = run["machine"]["cards"][0]["name"] if run["machine"]["cards"] else run["machine"]["cpu"] or "a CPU"
    return f"{markdown_of(titles, rows)}\n[Run {run['run']}]({link}): {machine}.\n"


def answer(run, options):
    """A bold sentence with the smallest and the largest of each ratio."""
    query, numbers = Query(run, options), {}
    for i, ratio in enumerate(options["ratio"].split(","), start=1):
        cells = [cell for _, cell in query.column(ratio).values()]
        if not cells:
            raise ValueError(f"run {run['run']} has no ratio '{ratio}'")
        numbers.update({f"min{i}": min(cells, key=float), f"max{i}": max(cells, key=float)})
    try:
        return f"**{options['text'].format(**numbers)}**\n"
    except (KeyError, IndexError) as error:
        raise ValueError(f"the text may hold {', '.join('{' + name + '}' for name in numbers)}; found {error}") from error


def blank_of(match):
    return re.sub(r"[^\n]", " ", match[0])


def render(page, text, runs):
    """Returns the page with its generated parts replaced. Raises ValueError with the line of a marker that is wrong."""
    def line_of(offset):
        return 1 + text.count("\n", 0, offset)

    def block(match):
        kind, marker = match[1], match[2]
        try:
            options = options_of(kind, marker)
            run = runs.get(int(options["run"]))
            link = os.path.relpath(runs.file(run["run"]), os.path.dirname(page))
            made = table(run, options, link) if kind == "table" else answer(run, options)
        except KeyError as error:
            raise ValueError(f"{page}:{line_of(match.start())}: the marker needs {error}") from error
        except ValueError as error:
            raise ValueError(f"{page}:{line_of(match.start())}: {error}") from error
        return f"<!-- {kind} {marker} -->\n{made}<!-- end -->"

    left = MARKER.search(CODE.sub(blank_of, BLOCK.sub(blank_of, text)))
    if left:
        raise ValueError(f"{page}:{line_of(left.start())}: a marker without its '<!-- end -->', or an end without its marker")
    return BLOCK.sub(block, text)


def broken_in_prose(page, text, tables_are_generated):
    text = CODE.sub(blank_of, text)
    for name, pattern in PROVENANCE:
        for match in re.finditer(pattern, text):
            yield f"{page}:{1 + text.count(chr(10), 0, match.start())}: {name}, {match[0]}, belongs in a run file"
    if tables_are_generated:
        for number, line in enumerate(BLOCK.sub(blank_of, text).splitlines(), start=1):
            if re.match(r" *\|[ :|-]*--[ :|-]*$", line):
                yield f"{page}:{number}: a table without a marker: store its rows in a run file"


def pages_of(home):
    """Pages with generated parts, and whether all of their tables are generated."""
    return [(page, pattern == "docs/results/*.md") for pattern in ["README.md", "docs/results/*.md", "docs/notes/*.md"]
            for page in sorted(glob.glob(os.path.join(home, pattern)))]


def broken_pages(home, folder):
    """Returns what is wrong with the pages."""
    runs, broken = Runs(folder), []
    for page, generated in pages_of(home):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        name = os.path.relpath(page, home)
        broken += broken_in_prose(name, text, generated)
        try:
            made = render(page, text, runs)
        except ValueError as error:
            broken.append(str(error).replace(page, name))
            continue
        if made != text:
            diff = difflib.unified_diff(text.splitlines(), made.splitlines(), name, "its run files", lineterm="", n=0)
            broken.append("\n".join([f"{name} differs from its run files; run 'scripts/results render'", *list(diff)[:20]]))
    for page in [os.path.join(home, "docs", "reliability.md")]:
        if os.path.exists(page):
            with open(page, encoding="utf-8") as file:
                broken += broken_in_prose(os.path.relpath(page, home), file.read(), False)
    return broken


def render_pages(home, folder):
    """Rewrites the pages. Returns the names of those that changed."""
    runs, changed = Runs(folder), []
    for page, _ in pages_of(home):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        made = render(page, text, runs)
        if made != text:
            with open(page, "w", encoding="utf-8") as file:
                file.write(made)
            changed.append(os.path.relpath(page, home))
    return changed
