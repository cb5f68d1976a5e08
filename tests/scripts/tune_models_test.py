#!/usr/bin/env python3
"""Tests of scripts/tune_models with a program that prints known times."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/tune_models")
PLANS = [{"engine": "fbfft", "plan": "8x8, fast", "ms": 1.0}, {"engine": "gemm", "plan": "", "ms": 3.0},
         {"engine": "cudnn", "plan": "wrong", "ms": 0.5, "reason": "misses the precision"}, {"engine": "direct", "plan": ""}]
TWIDDLE = f"""#!{sys.executable}
import json, sys
open(sys.argv[0] + ".calls", "a").write(sys.argv[2] + "\\n")
if "broken" in sys.argv[2]:
    sys.exit("no such model")
json.dump({{"layers": [{{"layer": "conv1", "plans": {PLANS!r}}}]}}, open(sys.argv[sys.argv.index("--json") + 1], "w"))
"""


class TuneModels(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.twiddle = os.path.join(self.folder.name, "twiddle")
        with open(self.twiddle, "w", encoding="utf-8") as text:
            text.write(TWIDDLE)
        os.chmod(self.twiddle, 0o755)
        self.results = os.path.join(self.folder.name, "results")

    def tearDown(self):
        self.folder.cleanup()

    def run_script(self, *networks, seconds="100"):
        return subprocess.run([sys.executable, SCRIPT, self.results, "--twiddle", self.twiddle, "--precision", "fp32", "--seconds", seconds,
                               "--networks", *networks, "--without", "fast=, fast$", "other=nothing"], capture_output=True, text=True)

    def calls(self):
        with open(self.twiddle + ".calls", encoding="utf-8") as text:
            return text.read().split()

    def test_prints_the_loss_without_a_kind_of_plan(self):
        done = self.run_script("lenet:4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| fast | 200.00 | lenet-4-fp32 | 0 |", done.stdout)
        self.assertIn("| other | 0.00 | lenet-4-fp32 | 0 |", done.stdout)

    def test_keeps_only_plans_that_were_timed(self):
        self.run_script("lenet:4")
        with open(os.path.join(self.results, "lenet-4-fp32.json"), encoding="utf-8") as text:
            self.assertEqual(len(json.load(text)["layers"][0]["plans"]), 3)

    def test_measures_no_file_twice(self):
        self.run_script("lenet:4")
        self.run_script("lenet:4", "digits:8")
        self.assertEqual(self.calls(), ["models/lenet.yaml", "models/digits.yaml"])

    def test_counts_runs_that_are_left(self):
        self.assertIn("2 runs are left", self.run_script("lenet:4", "digits:8", seconds="-1").stdout)

    def test_fails_if_a_run_fails(self):
        done = self.run_script("broken:4", "lenet:4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such model", done.stdout)
        self.assertEqual(os.listdir(self.results), ["lenet-4-fp32.json"])


if __name__ == "__main__":
    unittest.main()
