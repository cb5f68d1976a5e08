"""scripts/results with fake programs, in a folder without .git.

usage: python3 tests/scripts/results_test.py
"""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts")
TIMES = {"median_ms": 3.0, "p10_ms": 2.96, "p90_ms": 3.05, "samples": 20}
COMMIT = "0123456789ab"
GPU = "cuda:0: NVIDIA H200 (sm_90, 139 GiB), CUDA 13.0, driver for 13.0"
TIME = {"model": "alexnet", "batch_size": 128, "precision": "fp32", "engine": "measured", "device": GPU, "twiddle": "0.1.0",
        "commit": COMMIT, "compiler": "GNU 12.2.0", "iteration": TIMES, "recorded_iteration": {**TIMES, "median_ms": 2.98},
        "peak_pool_bytes": 1000}
RUN = {
    "schema": 1, "run": 7, "topic": "networks", "date": "2026-11-26", "commit": COMMIT, "dirty": False,
    "machine": {"cards": [{"name": "NVIDIA H200", "count": 1, "memory_gib": None, "copy_gb_per_s": None, "links": None}],
                "cpu": None, "cores": None, "memory_gib": None, "os": None, "other_load": None},
    "versions": dict.fromkeys(["driver", "cuda", "cudnn", "nccl", "pytorch", "compiler", "onednn"]), "environment": {},
    "commands": [{"id": "twiddle-1", "line": "twiddle time", "seconds": 1.5, "exit_code": 0}],
    "rows": [{"command": "twiddle-1", "program": "twiddle", "network": "alexnet", "batch": 128, "precision": "fp32", **TIMES}], "notes": []}


class Results(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.runs = os.path.join(self.home, "docs/results/runs")
        os.makedirs(self.runs)
        os.mkdir(os.path.join(self.home, "scripts"))
        for name in ["results", "result_pages.py", "result_rows.py"]:
            shutil.copy(os.path.join(SCRIPTS, name), os.path.join(self.home, "scripts"))
        self.write("bin/nvidia-smi", "#!/bin/sh\n[ $1 = topo ] && echo X NV18 || printf '%s\\n' "
                   "'NVIDIA H200, 143771, 580.159.04, 0' 'NVIDIA H200, 143771, 580.159.04, 0'\n")

    def write(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o700)
        return path

    def program(self, name, output, more=""):
        return self.write(name, f"#!{sys.executable}\nimport sys\nprint({json.dumps(output)!r})\n{more}\n")

    def results(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(self.home, "scripts/results"), *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.home}/bin:{os.environ['PATH']}", "NCCL_NVLS_ENABLE": "0"})

    def record(self, *arguments, topic="networks"):
        return self.results("record", topic, "--commit", COMMIT, *arguments)

    def run_file(self, name):
        with open(os.path.join(self.runs, name), encoding="utf-8") as file:
            return json.load(file)


    def broken_rules(self, *changes):
        """Checks a run for each change. Returns a string for each: its broken rules."""
        for number, change in enumerate(changes, start=1):
            run = copy.deepcopy({**RUN, "run": number})
            change(run)
            self.write(f"docs/results/runs/{number:04d}-h200-networks.json", json.dumps(run))
        done = self.results("check")
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 1 if len(lines) > 1 else 0)
        return ["\n".join(line for line in lines if f"/{number:04d}-" in line) for number in range(1, len(changes) + 1)]


class Record(Results):
    def test_adds_the_header_to_rows(self):
        twiddle = self.program("twiddle", TIME)
        done = self.record("--note", "A note.", "--", twiddle, "time", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.run_file("0001-h200-networks.json")
        self.assertEqual((run["schema"], run["run"], run["topic"], run["commit"], run["dirty"]), (1, 1, "networks", COMMIT, False))
        self.assertEqual(run["machine"]["cards"], [{"name": "NVIDIA H200", "count": 2, "memory_gib": 140.4, "copy_gb_per_s": None,
                                                    "links": "18 NVLinks"}])
        self.assertEqual((run["versions"]["driver"], run["versions"]["cuda"], run["versions"]["cudnn"]), ("580.159.04", "13.0", None))
        self.assertEqual(run["environment"]["NCCL_NVLS_ENABLE"], "0")
        self.assertEqual((run["commands"][0]["id"], run["commands"][0]["line"]), ("twiddle-1", f"{twiddle} time --json -"))
        self.assertEqual([(row["variant"], row["median_ms"]) for row in run["rows"]], [("eager", 3.0), ("graph", 2.98)])
        self.assertEqual(run["notes"], ["A note."])
        self.assertEqual(self.results("check").returncode, 0, self.results("check").stdout)

    def test_keeps_failed_commands(self):
        twiddle = self.program("twiddle", {**TIME, "device": "cpu: AMD EPYC, 2 threads, AVX2 (oneDNN 2.6.3)"})
        done = self.record("--", self.program("broken", {}, "sys.exit('no memory')"), "--json", "-", "--", "absent", "--json", "-",
                           "--", "echo", "text", "--json", "-", "--", twiddle, "--json", "-")
        self.assertEqual(done.returncode, 1)
        run = self.run_file("0001-cpu-networks.json")
        self.assertEqual([command["exit_code"] for command in run["commands"]], [1, None, 0, 0])
        self.assertEqual(run["commands"][0]["error"], "no memory")
        self.assertIn("No such file", run["commands"][1]["error"])
        self.assertEqual(run["commands"][2]["error"], "its standard output is not JSON")
        self.assertEqual((run["rows"][0]["command"], run["rows"][0]["threads"], run["versions"]["onednn"]), ("twiddle-4", 2, "2.6.3"))
        self.assertEqual(self.results("check").returncode, 0, self.results("check").stdout)

    def test_keeps_what_was_measured_before_a_kill(self):
        self.record("--", "absent", "--json", "-", "--", self.program("twiddle", TIME), "--json", "-",
                    "--", "sh", "-c", "kill -9 $PPID # --json -")
        self.assertEqual(os.listdir(self.runs), ["0001-h200-networks.json"])  # that of the first command had no card
        self.assertEqual(len(self.run_file("0001-h200-networks.json")["rows"]), 2)

    def test_takes_rows_as_they_are(self):
        row = {key: value for key, value in RUN["rows"][0].items() if key != "command"}
        self.record("--", self.program("torch_time.py", {"device": "cpu", "versions": {"pytorch": "2.11"}, "rows": [row]}), "--json", "-")
        run = self.run_file("0001-cpu-networks.json")
        self.assertEqual((run["rows"], run["versions"]["pytorch"]), ([{"command": "torch_time.py-1", **row}], "2.11"))

    def test_counts_on(self):
        command = ["--", self.program("twiddle", TIME), "--json", "-"]
        self.record("--number", "41", *command)
        self.record(*command, topic="layers")
        self.assertEqual(sorted(os.listdir(self.runs)), ["0041-h200-networks.json", "0042-h200-layers.json"])
        self.assertIn("has a run 41 already", self.record("--number", "41", *command).stderr)

    def test_marks_a_program_of_another_commit(self):
        for built in ["ba9876543210", COMMIT + "-dirty"]:
            self.record("--out", os.path.join(self.home, built), "--", self.program("twiddle", {**TIME, "commit": built}), "--json", "-")
            run = self.run_file(os.path.join(self.home, built, "0001-h200-networks.json"))
            self.assertEqual((run["dirty"], run["notes"]), (True, [f"The program of twiddle-1 was built from {built}."]))

    def test_measures_copies_by_transforms(self):
        row = {"dimensions": 1, "points": 8, "batch": 4, "layout": "packed", "direction": "R2C", "ms": 0.1, "bytes_per_second": 2e12,
               "share_of_copy": 0.5, "vendor": "cuFFT", "vendor_ms": 0.2, "vendor_bytes_per_second": 1e12}
        self.record("--", self.program("twiddle", {"bench": "fft", "device": GPU, "precision": "fp32", "rows": [row]}), "--json", "-")
        run = self.run_file("0001-h200-networks.json")
        self.assertEqual(run["machine"]["cards"][0]["copy_gb_per_s"], 4000)
        self.assertEqual([(each["program"], each["best_ms"], round(each["gb_per_s"])) for each in run["rows"]],
                         [("twiddle", 0.1, 2000), ("cufft", 0.2, 1000)])

    def test_refuses_before_it_measures(self):
        for arguments, message in [(["networks", "--commit", COMMIT], "a command after each '--'"),
                                   (["networks", "--commit", COMMIT, "--", "twiddle", "time"], "add '--json -' to 'twiddle time'"),
                                   (["networks", "--", "twiddle", "--json", "-"], "--commit ID"), (["speed"], "invalid choice")]:
            done = self.results("record", *arguments)
            self.assertEqual((done.returncode, os.listdir(self.runs)), (2, []))
            self.assertIn(message, done.stderr)


class Check(Results):
    def test_accepts_a_run(self):
        self.assertEqual(self.broken_rules(lambda run: None), [""])

    def test_names_the_broken_rule(self):
        def row(**fields):
            return lambda run: run["rows"][0].update(fields)

        def without(field):
            return lambda run: run["rows"][0].pop(field)

        cases = [
            (lambda run: run.pop("date"), "the file has no 'date'"),
            (lambda run: run.update(dirty="no"), "'dirty' must be boolean"),
            (lambda run: run.update(rank=1), "unknown field 'rank'"),
            (lambda run: run.update(schema=2), "unknown schema 2"),
            (lambda run: run.update(topic="speed"), "unknown topic 'speed'"),
            (lambda run: run.update(run=99), "the name must be 0099-CARD-networks.json"),
            (lambda run: run.update(date="26.11.2026"), "the date must be"),
            (lambda run: run.update(commit="main"), "the commit must be"),
            (lambda run: run["machine"]["cards"].append({**run["machine"]["cards"][0], "name": "NVIDIA H100"}), "must be of one model"),
            (lambda run: run["machine"]["cards"][0].pop("count"), "machine.cards[0] has no 'count'"),
            (lambda run: run["versions"].pop("cuda"), "versions has no 'cuda'"),
            (lambda run: run["environment"].update(OMP_NUM_THREADS=1), "environment must be strings"),
            (lambda run: run["commands"][0].pop("line"), "commands[0] has no 'line'"),
            (lambda run: run["commands"].append(run["commands"][0]), "an id twice"),
            (lambda run: run["commands"][0].update(error="failed"), "the id of a successful command"),
            (row(command="twiddle-2"), "the id of a successful command"),
            (row(program="caffe"), "unknown program 'caffe'"),
            (row(program="paper:lavin"), "without 'source'"),
            (row(mean_ms=1), "unknown field 'mean_ms'"),
            (row(batch="128"), "'batch' must be integer"),
            (without("batch"), "must have one of network + batch"),
            (row(layer="L5", problem="1x1", **{"pass": "forward"}), "must have one of network + batch"),
            (row(median_ms=None), "a null value without 'reason'"),
            (row(samples=9), "9 samples, at least 10"),
            (without("samples"), "0 samples"),
            (without("p90_ms"), "no p10_ms and p90_ms"),
            (row(p90_ms=3.12), "p10 to p90 is 5.3% of the median"),
        ]
        for (_, message), broken in zip(cases, self.broken_rules(*[change for change, _ in cases])):
            self.assertIn(message, broken)

    def test_a_note_excuses_its_command(self):
        def noted(note):
            def change(run):
                run["rows"][0]["samples"] = 5
                run["notes"].append(note)
            return change

        notes = ["twiddle-1: the host was busy", "all: the host was busy", "twiddle-2: the host was busy", "The host was busy."]
        self.assertEqual([broken == "" for broken in self.broken_rules(*map(noted, notes))], [True, True, False, False])

    def test_a_quotation_has_no_command(self):
        row = {"program": "paper:lavin", "network": "vgg_e", "batch": 1, "median_ms": 9.1, "source": "table 4"}
        self.assertEqual(self.broken_rules(lambda run: run["rows"].append(row)), [""])

    def test_a_training_has_a_seed(self):
        row = {"command": "twiddle-1", "program": "twiddle", "network": "digits", "batch": 32, "seed": 1, "top1_percent": 97.3}
        self.assertEqual(self.broken_rules(lambda run: run["rows"].append(row)), [""])

    def test_runs_are_unique(self):
        for name in ["0007-h100-networks.json", "0007-h200-networks.json"]:
            self.write(f"docs/results/runs/{name}", json.dumps(RUN))
        self.assertIn("run 7 is in several files", self.results("check").stdout)

    def test_files_are_json(self):
        for name, text in [("0001", "{"), ("0002", '{"run": NaN}'), ("0003", "[]")]:
            self.write(f"docs/results/runs/{name}-cpu-cpu.json", text)
        broken = self.results("check").stdout
        for name in ["0001", "0002", "0003"]:
            self.assertIn(f"{name}-cpu-cpu.json: ", broken)


class Old(Results):
    def test_may_lack_what_a_page_did_not_state(self):
        def old(**fields):
            return lambda run: run.update(old=True, **fields)

        table = {"columns": ["a", "b"], "rows": [["1", "2"]]}
        broken = self.broken_rules(old(date=None, commit=None, dirty=None), old(tables={"times": table}), lambda run: run["rows"][0].pop("samples"),
                                   lambda run: run.update(date=None), lambda run: run.update(tables={"times": table}),
                                   old(tables={"times": {**table, "rows": [["1"]]}}), old(tables={"times": {**table, "rows": [["1", 2]]}}))
        self.assertEqual(broken[:2], ["", ""])
        for found, message in zip(broken[2:], ["0 samples", "'date' must not be null", "only an old run has 'tables'", "2 strings in each row",
                                               "2 strings in each row"]):
            self.assertIn(message, found)

    def test_needs_no_samples(self):
        def change(run):
            run["rows"][0].pop("samples")
            run["old"] = True
        self.assertEqual(self.broken_rules(change), [""])


def row(program, precision, median, **more):
    return {"command": "twiddle-1", "program": program, "network": "alexnet", "batch": 128, "precision": precision, **TIMES,
            "median_ms": median, **more}


class Pages(Results):
    """Pages of docs/results with one run."""

    def run_of(self, rows, number=7, **fields):
        self.write(f"docs/results/runs/{number:04d}-h200-networks.json",
                   json.dumps({**copy.deepcopy(RUN), "notes": ["all: a test"], "run": number, "rows": rows, **fields}))

    def rendered(self, *lines, page="page.md"):
        """Returns a page with these lines after `render`."""
        path = self.write(f"docs/results/{page}", "".join(line + "\n" for line in lines))
        done = self.results("render")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def cells(self, marker):
        return [line.split(" | ")[-1].removesuffix(" |") for line in self.rendered(marker, "<!-- end -->").splitlines() if line.startswith("|")]

    def refused(self, *lines):
        self.write("docs/results/page.md", "".join(line + "\n" for line in lines))
        done = self.results("check")
        self.assertEqual(done.returncode, 1)
        return done.stdout


class Render(Pages):
    def test_makes_a_table_of_one_run(self):
        self.run_of([row("twiddle", "fp32", 3.0), row("pytorch", "fp32", 11.0, layout="contiguous"),
                     row("pytorch", "fp32", 12.5, layout="channels_last"), row("twiddle", "tf32", 2.498),
                     row("twiddle", "fp32", 102.4, network="vgg_e")])
        text = self.rendered("Before.", "<!-- table run=7 rows=network,batch columns=twiddle:fp32,pytorch:fp32,pytorch:fp32/twiddle:fp32,twiddle:tf32 -->",
                             "<!-- end -->", "After.")
        self.assertEqual(text.splitlines(), [
            "Before.", "<!-- table run=7 rows=network,batch columns=twiddle:fp32,pytorch:fp32,pytorch:fp32/twiddle:fp32,twiddle:tf32 -->",
            "| network | batch | Twiddle fp32 | PyTorch fp32 | PyTorch fp32 / Twiddle fp32 | Twiddle tf32 |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            "| AlexNet | 128 | **3.00** | 11.0 | 3.67 | 2.50 |", "| VGG-E | 128 | 102 |  |  |  |", "",
            "[Run 7](runs/0007-h200-networks.json): NVIDIA H200.", "<!-- end -->", "After."])
        self.assertEqual(self.rendered(*text.splitlines()), text)
        self.assertEqual(self.results("check").returncode, 0, self.results("check").stdout)

    def test_old_numbers_keep_their_digits(self):
        self.run_of([], old=True)
        path = os.path.join(self.runs, "0007-h200-networks.json")
        line = json.dumps(row("twiddle", "fp32", 0)).replace('"median_ms": 0', '"median_ms": 2.020')
        with open(path, encoding="utf-8") as file:
            text = file.read().replace('"rows": []', f'"rows": [{line}]')
        self.write("docs/results/runs/0007-h200-networks.json", text)
        self.assertEqual(self.cells("<!-- table run=7 rows=network columns=twiddle -->")[-1], "2.020")

    def test_shows_other_fields_of_the_fastest(self):
        self.run_of([row("twiddle", "fp32", 3.0, engine="fbfft", peak_bytes=7), row("twiddle", "fp32", 2.0, engine="winograd")])
        self.assertEqual(self.cells("<!-- table run=7 rows=network columns=twiddle@engine titles=,plan -->"), ["plan", "---", "`winograd`"])

    def test_names_the_configuration_of_the_fastest(self):
        self.run_of([row("twiddle", "bf16", 3.0, variant="graph"), row("pytorch", "bf16", 5.0, variant="eager", layout="contiguous"),
                     row("pytorch", "bf16", 2.0, variant="compiled_graph", layout="channels_last")])
        text = self.rendered("<!-- table run=7 rows=network columns=twiddle:bf16,pytorch:bf16 named=variant,layout -->", "<!-- end -->")
        self.assertIn("| --- | ---: | ---: |\n| AlexNet | 3.00 | **2.00** (compiled in a graph, NHWC) |", text)

    def test_errors_have_an_exponent(self):
        layer = {"command": "twiddle-1", "program": "pytorch", "layer": "conv2", "problem": "1x1", "pass": "forward"}
        self.run_of([{**layer, "precision": "bf16", "error": 0.00166}, {**layer, "precision": "fp32", "error": 3.14e-7}])
        marker = "<!-- table run=7 rows=layer columns=pytorch:fp32,pytorch:bf16 value=error -->"
        self.assertIn("| conv2 | 3.14e-7 | 1.66e-3 |", self.rendered(marker, "<!-- end -->"))

    def test_renders_the_readme(self):
        self.run_of([row("twiddle", "fp32", 3.0)])
        text = self.rendered("<!-- table run=7 rows=network columns=twiddle -->", "<!-- end -->", page="../../README.md")
        self.assertIn("| AlexNet | 3.00 |\n\n[Run 7](docs/results/runs/0007-h200-networks.json)", text)

    def test_sums_passes_of_an_engine(self):
        passes = [(each, name, ms) for each, name, ms in [("forward", "fbfft", 1.0), ("backward", "fbfft", 2.0), ("forward", "gemm", 0.5),
                                                          ("backward", "gemm", 4.0), ("forward", "cudnn", 0.1)]]
        self.run_of([row("twiddle", "fp32", ms, engine=name, **{"pass": each}) for each, name, ms in passes])
        self.assertEqual(self.cells("<!-- table run=7 rows=network columns=twiddle total=pass -->")[-1], "3.00")

    def test_selects_rows_and_shows_the_spread(self):
        self.run_of([row("twiddle", "fp32", 3.0), row("twiddle", "fp32", 2.0, batch=64), row("twiddle", "fp32", 4.0, batch=256, gpus=2)])
        self.assertEqual(self.cells("<!-- table run=7 rows=network columns=twiddle where=batch=128 spread=p10_ms,p90_ms -->")[-1],
                         "3.00 (2.96 to 3.05)")
        self.assertEqual(self.cells("<!-- table run=7 rows=batch columns=twiddle where=batch=64|128 -->")[2:], ["3.00", "2.00"])
        self.assertIn("| 128 | 4.00 |", self.rendered("<!-- table run=7 rows=images_per_gpu columns=twiddle:gpus=2 -->", "<!-- end -->"))

    def test_failures_and_absent_rows(self):
        self.run_of([row("twiddle", "fp32", None, reason="no memory"), row("twiddle", "fp32", 3.0, batch=64), row("pytorch", "fp32", 1.0)])
        self.assertEqual(self.cells("<!-- table run=7 rows=batch columns=pytorch,twiddle -->")[2:], ["failed", "3.00"])

    def test_stored_tables(self):
        self.run_of([], old=True, tables={"times": {"columns": ["a", "b"], "rows": [["x", "1.50"], ["y", "2"]]}})
        text = self.rendered("<!-- table run=7 name=times columns=b where=a=y titles=ms -->", "<!-- end -->")
        self.assertIn("| ms |\n| ---: |\n| 2 |\n", text)

    def test_answers(self):
        self.run_of([row("twiddle", "fp32", 3.0), row("pytorch", "fp32", 11.0), row("twiddle", "fp32", 4.0, batch=64),
                     row("pytorch", "fp32", 8.0, batch=64)])
        text = self.rendered('<!-- answer run=7 rows=batch ratio=pytorch/twiddle text="{min1}x to {max1}x as fast as PyTorch." -->', "<!-- end -->")
        self.assertIn("\n**2.00x to 3.67x as fast as PyTorch.**\n", text)

    def test_names_what_is_wrong_with_a_marker(self):
        self.run_of([row("twiddle", "fp32", 3.0)])
        for marker, message in [
                ("table run=7,8 rows=network columns=twiddle", "a table shows one run"), ("table rows=network columns=twiddle", "a table shows one run"),
                ("table run=8 rows=network columns=twiddle", "run 8 has 0 files"), ("table run=7 rows=network", "needs 'rows' and 'columns'"),
                ("table run=7 rows=network columns=pytorch", "no row of run 7 has 'pytorch'"), ("table run=7 size=3", "known options are"),
                ("table run=7 name=times", "no table 'times'"), ("table run=7 rows=network columns=twiddle titles=a", "'titles' must be 2"),
                ("answer run=7 rows=network ratio=twiddle/twiddle text={min2}", "{min1}, {max1}"), ("answer run=7 rows=network", "needs 'ratio'")]:
            found = self.refused("Text.", f"<!-- {marker} -->", "<!-- end -->")
            self.assertIn("docs/results/page.md:2: ", found)
            self.assertIn(message, found)
        self.assertIn("page.md:1: a marker without", self.refused("<!-- table run=7 rows=network columns=twiddle -->"))
        self.run_of([row("twiddle", "fp32", 3.0)], dirty=True)
        self.assertIn("uncommitted changes", self.refused("<!-- table run=7 rows=network columns=twiddle -->", "<!-- end -->"))

    def test_leaves_examples_in_code_alone(self):
        self.assertIn("\n  <!-- table run=12 -->\n", self.rendered("```", "  <!-- table run=12 -->", "  <!-- end -->", "```"))


class CheckOfPages(Pages):
    def broken(self, *lines, page="results/page.md"):
        self.write(f"docs/{page}", "".join(line + "\n" for line in lines))
        done = self.results("check")
        self.assertEqual(done.returncode, 1 if " 0 broken rules" not in done.stdout else 0)
        return done.stdout

    def test_finds_edited_tables(self):
        self.run_of([row("twiddle", "fp32", 3.0)])
        text = self.rendered("<!-- table run=7 rows=network columns=twiddle -->", "<!-- end -->")
        found = self.broken(*text.replace("3.00", "2.00").splitlines())
        self.assertIn("docs/results/page.md differs from its run files; run 'scripts/results render'", found)
        self.assertIn("-| AlexNet | 2.00 |\n+| AlexNet | 3.00 |", found)

    def test_finds_tables_without_a_run(self):
        table = ["| network | ms |", "| --- | ---: |", "| AlexNet | 3.00 |"]
        self.assertIn(" 0 broken rules", self.broken(*table, page="notes/page.md"))
        self.assertIn("docs/results/page.md:2: a table without a marker", self.broken(*table))

    def test_finds_provenance_in_prose(self):
        for text, message in [("At c2d9cb4 it was slower.", "a commit id, c2d9cb4"), ("Measured on 2026-11-22.", "a date, 2026-11-22"),
                              ("With driver 580.159.04.", "a driver's version, driver 580.1")]:
            for page in ["results/page.md", "notes/page.md", "reliability.md"]:
                self.assertIn(f"docs/{page}:1: {message}, belongs in a run file", self.broken(text, page=page))
                os.remove(os.path.join(self.home, "docs", page))
        for text in ["Run 12 took 1234567 ns, 1e10 times the 2e-6 of [run](runs/0012-h200-networks.json).", "```\nc2d9cb4\n```"]:
            self.assertIn(" 0 broken rules", self.broken(text))


if __name__ == "__main__":
    unittest.main()
