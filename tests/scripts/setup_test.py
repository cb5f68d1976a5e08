"""scripts/setup.sh, and what CMake decides at the first configuration.

usage: python3 tests/scripts/setup_test.py
"""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def write_program(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o700)


class CMakeVersion(unittest.TestCase):
    def configure_with(self, version):
        with tempfile.TemporaryDirectory() as folder:
            write_program(folder, "cmake", f"#!/bin/sh\necho cmake version {version}\n")
            return subprocess.run(["sh", "-c", f". scripts/setup.sh; build={folder}/build; configure"], cwd=ROOT,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, capture_output=True, text=True)

    def test_old_one_fails_with_advice(self):
        for version in ("3.22.1", "3.9.6", "2.8"):
            result = self.configure_with(version)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"found {version}: 'pip install cmake'", result.stderr)

    def test_others_configure(self):
        for version in ("3.24.0", "3.25.1", "3.31.6", "4.1.0-rc1"):
            result = self.configure_with(version)
            self.assertEqual(result.returncode, 0, result.stderr)


class Ccache(unittest.TestCase):
    def test_is_searched_once(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CMakeLists.txt"), "w") as file:
                file.write(f"""cmake_minimum_required(VERSION 3.24)
project(one LANGUAGES NONE)
include({ROOT}/cmake/TwiddleTargets.cmake)
message(STATUS "launcher: '${{CMAKE_CXX_COMPILER_LAUNCHER}}'")
""")
            tools = os.path.join(folder, "tools")
            os.mkdir(tools)

            def launcher():
                configured = subprocess.run(["cmake", "-S", folder, "-B", f"{folder}/build", "-DCMAKE_MAKE_PROGRAM=make", f"-DCMAKE_PROGRAM_PATH={tools}",
                                             "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"],
                                            check=True, capture_output=True, text=True)
                return next(line for line in configured.stdout.splitlines() if "launcher: " in line)

            first = launcher()
            self.assertTrue(first.endswith("''"), first)
            write_program(tools, "ccache", "#!/bin/sh\n")
            self.assertEqual(launcher(), first)


if __name__ == "__main__":
    unittest.main()
