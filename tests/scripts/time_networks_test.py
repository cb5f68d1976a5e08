#!/usr/bin/env python3
"""Tests of scripts/time_networks with programs that print known times.

usage: python3 tests/scripts/time_networks_test.py
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts")
TIMES = {"median_ms": 3.0, "p10_ms": 2.96, "p90_ms": 3.05, "samples": 20}
# Both append what they measure, and on which device, to `calls`.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
options = dict(zip(sys.argv, sys.argv[1:]))
network = next(word for word in sys.argv if word.endswith(".yaml"))[len("models/"):-len(".yaml")]
precision, home, times = options["--precision"], os.environ["HOME"], {TIMES!r}
def call(kind):
    with open(home + "/calls", "a") as calls:
        print(kind, network, precision, options.get("--layouts", ""), "on", os.environ.get("CUDA_VISIBLE_DEVICES"), file=calls)
"""
TWIDDLE = PROGRAM + """
call("twiddle")
if network == "broken":
    sys.exit("no such model")
json.dump({"model": network, "batch_size": 4, "precision": precision, "engine": "measured", "device": "cuda:0: NVIDIA H200 (sm_90)",
           "commit": "0123456789ab", "iteration": times, "recorded_iteration": times, "peak_pool_bytes": 1}, open(options["--json"], "w"))
"""
TORCH = PROGRAM + """
if network == "broken" and precision == "tf32":
    sys.exit("no PyTorch")
print("a line of a library\\nready", flush=True)
if not sys.stdin.readline():
    sys.exit("no turn")
kind = "compiled" if "--compile" in sys.argv else "eager"
call(kind)
row = {"program": "pytorch", "network": network, "batch": 4, "precision": precision, "layout": options["--layouts"], "variant": kind}
rows = [{**row, **times}]
if kind == "compiled":
    print("no kernel", file=sys.stderr)
    rows = [{**row, "median_ms": None, "reason": "out of memory"}]
json.dump({"device": "cuda:0: NVIDIA H200", "versions": {"pytorch": "2.11"}, "rows": rows}, open(options["--json"], "w"))
sys.exit(1 if kind == "compiled" else 0)
"""
# $1 is --id=INDEX
NVIDIA_SMI = "#!/bin/sh\necho NVIDIA H200, GPU-$(cat $HOME/machine)00000${1#--id=}-1111\n"


class TimeNetworks(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        os.mkdir(os.path.join(self.home, "scripts"))
        for name in ["time_networks", "result_rows.py"]:
            shutil.copy(os.path.join(SCRIPTS, name), os.path.join(self.home, "scripts"))
        self.write("twiddle", TWIDDLE)
        self.write("tests/peer/torch_time.py", TORCH)
        self.write("bin/nvidia-smi", NVIDIA_SMI)
        self.write("machine", "aa")
        self.write("calls", "")

    def write(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o700)

    def time_networks(self, *networks, devices=("0",), seconds="100"):
        """Returns what it prints as JSON, its progress and what the programs were called for."""
        self.write("calls", "")
        done = subprocess.run([sys.executable, os.path.join(self.home, "scripts/time_networks"), os.path.join(self.home, "results"),
                               "--networks", *networks, "--devices", *devices, "--seconds", seconds, "--json", "-",
                               "--twiddle", os.path.join(self.home, "twiddle")], capture_output=True, text=True,
                              env={**os.environ, "HOME": self.home, "PATH": f"{self.home}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.home, "calls"), encoding="utf-8") as calls:
            return json.loads(done.stdout), done.stderr, calls.read().splitlines()

    def files(self):
        return sorted(os.path.join(card, name) for card in os.listdir(os.path.join(self.home, "results"))
                      for name in os.listdir(os.path.join(self.home, "results", card)))

    def test_measures_each_precision_layout_and_variant(self):
        found, _, calls = self.time_networks("lenet:4")
        self.assertEqual(len(calls), 3 + 6 + 6)
        self.assertEqual([call for call in calls if call.startswith("twiddle")],
                         [f"twiddle lenet {precision}  on 0" for precision in ["fp32", "tf32", "bf16"]])
        self.assertIn("h200-aa000000/lenet-4-compiled-bf16-channels_last.json", self.files())
        self.assertEqual((found["device"], found["commit"], found["versions"]), ("cuda:0: NVIDIA H200 (sm_90)", "0123456789ab", {"pytorch": "2.11"}))
        self.assertEqual([(row["program"], row["variant"], row["precision"]) for row in found["rows"][:3]],
                         [("twiddle", "eager", "fp32"), ("twiddle", "graph", "fp32"), ("twiddle", "eager", "tf32")])
        self.assertEqual(len(found["rows"]), 6 + 6 + 6)

    def test_measures_no_file_twice(self):
        self.time_networks("lenet:4")
        _, _, calls = self.time_networks("lenet:4", "digits:4")
        self.assertEqual({call.split()[1] for call in calls}, {"digits"})

    def test_keeps_a_network_on_its_device(self):
        networks = ["lenet:4", "digits:4", "alexnet:4"]
        _, _, calls = self.time_networks(*networks, devices=("0", "1"))
        devices = {(call.split()[1], call.split()[-1]) for call in calls}
        self.assertEqual(devices, {("lenet", "0"), ("digits", "1"), ("alexnet", "0")})
        os.remove(os.path.join(self.home, "results/h200-aa000001/digits-4-twiddle-fp32.json"))
        _, _, calls = self.time_networks(*networks, devices=("0", "1"))
        self.assertEqual(calls, ["twiddle digits fp32  on 1"])

    def test_begins_again_on_another_card_unless_complete(self):
        self.time_networks("lenet:4", "digits:4")
        os.remove(os.path.join(self.home, "results/h200-aa000000/digits-4-twiddle-fp32.json"))
        self.write("machine", "bb")
        found, _, calls = self.time_networks("lenet:4", "digits:4")
        self.assertEqual([len(calls), {call.split()[1] for call in calls}], [15, {"digits"}])
        self.assertEqual(len(found["rows"]), 2 * 18)

    def test_keeps_the_reason_of_a_failure(self):
        found, progress, _ = self.time_networks("broken:4")
        failed = [row for row in found["rows"] if row["median_ms"] is None]
        self.assertEqual({(row["program"], row["reason"]) for row in failed},
                         {("twiddle", "exit code 1: no such model"), ("pytorch", "exit code 1: no PyTorch"), ("pytorch", "out of memory")})
        self.assertNotIn("Error", progress)
        self.assertIn("compiled failed: out of memory", progress)
        with open(os.path.join(self.home, "results/h200-aa000000/broken-4-compiled-fp32-contiguous.log"), encoding="utf-8") as log:
            self.assertEqual(log.read(), "no kernel\n")
        self.assertEqual(self.time_networks("broken:4")[2], [])

    def test_begins_no_run_after_the_time(self):
        found, progress, calls = self.time_networks("lenet:4", seconds="-1")
        self.assertEqual((calls, found["rows"]), ([], []))
        self.assertIn("15 runs are left: call it again with the same arguments", progress)


if __name__ == "__main__":
    unittest.main()
