"""How a release wheel's library (TWIDDLE_MANYLINUX=ON), built on a newer Linux, runs on those of manylinux_2_28 (PEP 600), as PyTorch's own do.

usage: python manylinux.py stubs FOLDER       writes shared libraries to link against
       python manylinux.py check FILE...      libraries or wheels: are they such? Names each symbol that is too new

A symbol of glibc or libstdc++ bears the version that the library linked against gives it, which is the newest, even
where an older one does. The stubs have the names alone, each with the newest version that the older Linux knows; linked
against first, they leave what is newer in libstdc++ to libstdc++.a, as that Linux' own newer compilers do.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile

newest = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}

# Libraries of these functions before glibc 2.34 moved them to libc.
former_homes = [(r"pthread_|sem_", "libpthread.so.0"), (r"dl", "libdl.so.2"), (r"shm_|mq_|aio_|lio_|timer_", "librt.so.1")]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_old_enough(version):
    family, _, number = version.partition("_")
    if family not in newest or not re.fullmatch(r"[\d.]+", number):
        return family not in newest
    return tuple(map(int, number.split("."))) <= newest[family]


def exported(library):
    """Symbols by name: of which kind, and its versions, of which the last is the usual one."""
    found = {}
    for line in output_of("objdump", "-T", library).splitlines():
        match = re.fullmatch(r"[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ +(\(?)([\w.]+)\)? +(\S+)", line)
        if match and match[2] not in ("*UND*", "*ABS*"):
            flags, section, is_hidden, version, name = match.groups()
            kind = "tls_object" if section.startswith(".t") and section != ".text" else "object" if "O" in flags else "function"
            versions = found.setdefault(name, (kind, []))[1]
            versions.insert(0 if is_hidden else len(versions), version)
    return found


def chosen(symbols):
    """Name, kind and version of those that an older Linux has, and whether a newer one has changed or moved them since."""
    for name, (kind, versions) in symbols.items():
        old = [version for version in versions if is_old_enough(version)]
        if old:
            newest_old = max(old, key=lambda version: [int(n) for n in re.findall(r"\d+", version)])
            yield name, kind, newest_old, not is_old_enough(versions[-1])


def write_stub(folder, soname, symbols):
    """A shared library of that name, whose symbols are of no size."""
    nodes = {}
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "stub.s"), os.path.join(work, "stub.map")
        with open(source, "w") as text:
            for name, kind, version in symbols:
                nodes.setdefault(version, []).append(name)
                section = '.tbss,"awT",%nobits' if kind == "tls_object" else ".text"
                text.write(f".section {section}\n.globl {name}\n.type {name}, %{kind}\n{name}:\n")
            text.write('.section .note.GNU-stack,"",%progbits\n')
        with open(script, "w") as text:
            for version, names in nodes.items():
                text.write(f"{version} {{ global: {' '.join(f'{name};' for name in names)} }};\n")
        subprocess.run(["as", "-o", f"{work}/stub.o", source], check=True)
        subprocess.run(["ld", "-shared", f"-soname={soname}", f"--version-script={script}",
                        "-o", os.path.join(folder, soname), f"{work}/stub.o"], check=True)


def write_stubs(folder):
    compiler = os.environ.get("CXX", "g++")
    found = {name: output_of(compiler, f"-print-file-name={name}").strip()
             for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libstdc++.a")}
    missing = [name for name, path in found.items() if not os.path.isabs(path)]
    if missing:
        sys.exit(f"{compiler} has no {', '.join(missing)}")
    symbols = {library: exported(found[library]) for library in ("libc.so.6", "libm.so.6", "libstdc++.so.6")}
    if "__isoc23_sscanf" in symbols["libc.so.6"]:
        sys.exit("glibc 2.38 or later is here, whose headers call functions of 2.38: build the wheel on an older Linux, "
                 "such as Debian 12")
    os.makedirs(folder, exist_ok=True)
    stubs = {}
    for library in symbols:
        for name, kind, version, changed in chosen(symbols[library]):
            homes = former_homes if changed and library == "libc.so.6" else []
            home = next((home for names, home in homes if re.match(names, name)), library)
            stubs.setdefault(home, []).append((name, kind, version))
    for home, symbols in stubs.items():
        write_stub(folder, home, symbols)


def too_new(library):
    """Symbols that a library needs and an older Linux does not have, with their versions."""
    for line in output_of("objdump", "-T", library).splitlines():
        match = re.search(r"\*UND\*\s+[0-9a-f]+ +\(?([\w.]+)\)? +(\S+)$", line)
        if match and not is_old_enough(match[1]):
            yield f"{match[2]} {match[1]}"


def check(file):
    with tempfile.TemporaryDirectory() as work:
        libraries = [file]
        if file.endswith(".whl"):
            with zipfile.ZipFile(file) as wheel:
                libraries = [wheel.extract(name, work) for name in wheel.namelist() if ".so" in os.path.basename(name)]
        found = [symbol for library in libraries for symbol in too_new(library)]
    print(f"{file}: " + ("runs where glibc is 2.28 or later" if not found else "too new: " + ", ".join(sorted(found))))
    return not found


def main():
    verb, *files = sys.argv[1:] or [""]
    if verb not in ("stubs", "check") or not files:
        sys.exit(__doc__)
    if verb == "stubs":
        write_stubs(*files)
    elif not all([check(file) for file in files]):
        sys.exit(1)


if __name__ == "__main__":
    main()
