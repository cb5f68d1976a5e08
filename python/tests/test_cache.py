"""The file of measured choices: one that is damaged, none at all, and python -m twiddle_torch choices, tune and clear."""

import os
import subprocess
import sys
import tempfile
import unittest

from support import TestCase

import twiddle_torch

STEP = """
import torch, twiddle_torch
x, weight = torch.randn(2, 4, 9, 9, requires_grad=True), torch.randn(6, 2, 3, 3, requires_grad=True)
twiddle_torch.conv2d(x, weight, stride=2, padding=(1, 2), groups=2).sum().backward()
with torch.no_grad():
    twiddle_torch.conv2d(x, weight, torch.randn(6), groups=2)
"""


class Cache(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.file = folder.name, os.path.join(folder.name, "choices.txt")

    def python(self, *arguments, cache=None):
        package = os.path.dirname(os.path.dirname(os.path.abspath(twiddle_torch.__file__)))
        env = {**os.environ, "PYTHONPATH": package, "TWIDDLE_TORCH_CACHE": cache or self.file}
        return subprocess.run([sys.executable, *arguments], cwd=self.folder, env=env, capture_output=True, text=True)

    def command(self, name):
        result = self.python("-m", "twiddle_torch", name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def lines(self):
        with open(self.file) as file:
            return file.read().splitlines()

    def test_keeps_damaged_file_and_warns(self):
        with open(self.file, "wb") as file:
            file.write(b"\0\0\xff not what was written\n")
        result = self.python("-c", STEP)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("is not a choice cache of Twiddle", result.stderr)
        for command in ("choices", "clear", "tune"):
            result = self.python("-m", "twiddle_torch", command)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"{self.file} is not a file of choices, or is damaged", result.stderr)
        with open(self.file, "rb") as file:
            self.assertEqual(file.read(), b"\0\0\xff not what was written\n")

    def test_warns_of_folder_instead_of_file(self):
        os.mkdir(self.file)
        result = self.python("-c", STEP)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("is not a choice cache of Twiddle", result.stderr)
        result = self.python("-m", "twiddle_torch", "choices")
        self.assertIn(f"{self.file} cannot be read: Is a directory", result.stderr)

    def test_off_writes_no_file(self):
        result = self.python("-c", STEP, cache="off")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_lists_tunes_and_clears_choices(self):
        self.assertEqual(self.python("-c", STEP).returncode, 0)
        before = self.lines()
        kept = len(before) - 1
        self.assertGreaterEqual(kept, 4)
        shown = self.command("choices")
        self.assertIn(f"{self.file}: {kept} choices", shown)
        self.assertIn("backward_weight, batch 2, 1x4x9x9 * 6x2x3x3 stride 2 pad 1x2 groups 2, fp32", shown)

        slow = [line.split("\t") for line in before[1:]]
        with open(self.file, "w") as file:  # as if measured on a busy machine, and once on another one
            print(before[0], file=file)
            for fields in slow:
                print("\t".join([fields[0], "1e6", *fields[2:]]), file=file)
            other = "\t".join([*slow[0][:6], "another machine", *slow[0][7:]])
            print(other, file=file)
        self.assertIn("1 choices of other devices, thread counts or builds stay as they are", self.command("tune"))
        after = self.lines()
        self.assertIn(other, after)
        after = [line.split("\t") for line in after[1:] if line != other]
        self.assertEqual(sorted(fields[2:] for fields in after), sorted(fields[2:] for fields in slow))
        self.assertTrue(all(float(fields[1]) < 1e6 for fields in after))

        self.assertIn("deleted", self.command("clear"))
        self.assertFalse(os.path.exists(self.file))
        self.assertIn("0 choices", self.command("choices"))

    def test_skips_entry_whose_problem_is_damaged(self):
        self.assertEqual(self.python("-c", STEP).returncode, 0)
        first, entry, *others = self.lines()
        fields = entry.split("\t")
        with open(self.file, "w") as file:
            print(first, "\t".join([*fields[:5], "1x4x9x9 6x2x3x3", *fields[6:]]), *others, sep="\n", file=file)
        self.assertIn(f"{self.file}: {len(others)} choices", self.command("choices"))
        self.command("tune")

    def test_refuses_unknown_commands(self):
        result = self.python("-m", "twiddle_torch", "tunes")
        self.assertEqual(result.returncode, 2)
        self.assertIn("python -m twiddle_torch [COMMAND]", result.stderr)


if __name__ == "__main__":
    unittest.main()
