"""scripts/scaling with synthetic programs instead of ours and of PyTorch: no GPU is needed.

usage: python3 tests/scripts/scaling_test.py
"""
import os
import subprocess
import sys
import tempfile
import unittest

SCALING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/scaling")

# An image takes 1 ms on one GPU alone; several that share it lose 2 ms.
TWIDDLE = """#!{python}
import json, sys
value = lambda name: sys.argv[sys.argv.index(name) + 1]
gpus, batch = int(value("--gpus")), int(value("--batch-size"))
alone = batch / gpus
together = alone + 2
with open(value("--json"), "w") as result:
    json.dump({{"alone": {{"median_ms": alone}}, "together": {{"median_ms": together}}, "efficiency": alone / together,
               "exposed_communication_ms": 2, "images_per_second": 1000 * batch / together}}, result)
"""
# Four times as long.
PYTHON = """#!{python}
import json, sys
batch = int(sys.argv[sys.argv.index("--batch-size") + 1])
for precision in ["fp32", "tf32"]:
    print(json.dumps({{"precision": precision, "layout": "contiguous", "alone_ms": 4 * batch, "together_ms": 4 * batch + 8}}))
"""


class Scaling(unittest.TestCase):
    def tables(self, gpus, network, twiddle=TWIDDLE, python=PYTHON):
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for name, text in [("twiddle", twiddle), ("python", python), ("twiddle-bench", "#!/bin/sh\n")]:
                programs.append(os.path.join(folder, name))
                with open(programs[-1], "w") as file:
                    file.write(text.format(python=sys.executable))
                os.chmod(programs[-1], 0o700)
            command = [sys.executable, SCALING, str(gpus), "--twiddle", programs[0], "--python", programs[1], "--networks", network]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
        heads = [at for at, cells in enumerate(rows) if cells[0] == "network"]
        return [[dict(zip(cells, found)) for cells in [self.unlike(rows[begin])] for found in rows[begin + 2:end]]
                for begin, end in zip(heads, heads[1:] + [len(rows)])]

    def unlike(self, titles):
        """Columns after DDP's first one repeat the titles of our columns."""
        ddp = next(at for at, title in enumerate(titles) if title.startswith("DDP: "))
        return titles[:ddp + 1] + ["DDP: " + title for title in titles[ddp + 1:]]

    def test_the_speed_up_is_that_over_one_gpu_with_all_images(self):
        weak, strong = self.tables(2, "alexnet:64")
        self.assertEqual([found["precision"] for found in strong], ["fp32", "tf32"])
        for found in strong:
            self.assertEqual((found["one, its shard"], found["all"], found["one, all images"]), ("32.000", "34.000", "64.000"))
            self.assertEqual(found["speed-up"], "1.88")
            self.assertEqual((found["DDP: one, its shard"], found["DDP: all"], found["DDP: one, all images"]),
                             ("128.000", "136.000", "256.000"))
            self.assertEqual((found["DDP: speed-up"], found["DDP: images/s"]), ("1.88", "471"))
        self.assertEqual((weak[0]["one"], weak[0]["all"], weak[0]["DDP: one"]), ("64.000", "66.000", "256.000"))

    def test_failures_are_reported_in_their_rows(self):
        weak, strong = self.tables(2, "alexnet:64", python="#!/bin/sh\necho no torch >&2; exit 1\n")
        self.assertEqual((weak[0]["DDP: one"], strong[0]["DDP: one, its shard"]), ("no torch", "no torch"))
        self.assertEqual((strong[0]["speed-up"], strong[0]["DDP: speed-up"]), ("1.88", ""))

    def test_uneven_images_are_not_run_by_ddp(self):
        _, strong = self.tables(3, "alexnet:64")
        self.assertEqual(strong[0]["DDP: one, its shard"], "64 images cannot be split evenly over 3 GPUs")


unittest.main()
