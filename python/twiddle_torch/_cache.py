"""The file in which measured choices are kept between processes: reading it, and measuring again what it knows."""

import os
import re
import sys
from typing import Dict, List, NamedTuple, Tuple

import torch

_beginning = b"# twiddle convolution choices "
_problem = re.compile(r"(\d+x\d+x\d+x\d+) \* (\d+x\d+x\d+x\d+)(.*)")  # shapes of the input and the weights
_variable = "TWIDDLE_TORCH_CACHE"


class Entry(NamedTuple):
    plan: str
    milliseconds: str
    batch: int
    conv_pass: str
    precision: str
    problem: str  # for one image, and the other options of the pass
    device: str
    workspace_limit: int
    deterministic: bool
    engines: str  # the benchmarked engines
    build: str

    @property
    def evaluates(self) -> bool:
        return "forward alone" in self.engines


def usual_file() -> str:
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(folder, "twiddle", "torch-convolutions.txt") if os.path.isabs(folder) else ""


def set_up() -> None:
    """Leaves in the environment, where the library reads it, the name of a file or an empty string."""
    name = os.environ.get(_variable, usual_file())
    os.environ[_variable] = "" if name == "off" else name


def file() -> str:
    """Returns the name of the file; exits if there is none, or if another program wrote the file."""
    name = os.environ[_variable]
    if not name:
        sys.exit(f"choices are not kept in a file: {_variable} is off")
    try:
        with open(name, "rb") as opened:
            start = opened.read(len(_beginning))
    except FileNotFoundError:
        return name
    except OSError as error:
        sys.exit(f"{name} cannot be read: {error.strerror}")
    if start not in (b"", _beginning):
        sys.exit(f"{name} is not a file of choices, or is damaged: delete it, or set {_variable}")
    return name


def entries() -> List[Entry]:
    """Returns those that this version can read."""
    if not os.path.exists(file()):
        return []
    found = []
    with open(file(), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 10:
                continue
            batch = re.fullmatch(r"batch (\d+)", fields[2])
            limits = re.fullmatch(r"workspace_limit (\d+)( deterministic)?", fields[7])
            if batch and limits and _problem.fullmatch(fields[5]):
                found.append(Entry(*fields[:2], int(batch[1]), *fields[3:7], int(limits[1]), bool(limits[2]), *fields[8:]))
    return found


def tune() -> int:
    """Measures again what the file knows of this machine and build; returns how many entries it left as they were."""
    gpus = range(torch.cuda.device_count())
    names = {-1: "cpu", **{gpu: f"cuda:{gpu}" for gpu in gpus}}
    devices = {torch.ops.twiddle._device(gpu).split("\t")[0]: name for gpu, name in names.items()}
    build = "twiddle " + torch.ops.twiddle._build()
    groups: Dict[Tuple[object, ...], List[Entry]] = {}
    left = 0
    for entry in entries():
        if entry.device in devices and entry.build == build:
            groups.setdefault(entry[2:3] + entry[4:10], []).append(entry)
        else:
            left += 1
    torch.ops.twiddle._measure_again()
    for index, group in enumerate(groups.values(), 1):
        print(f"{index} of {len(groups)}: batch {group[0].batch}, {group[0].problem}, {group[0].precision}, {group[0].device}")
        _run(group, devices[group[0].device])
    return left


def _run(group: List[Entry], device: str) -> None:
    """A step, or where no gradient was measured a forward pass alone, of the problem that these entries share."""
    from twiddle_torch.conv import conv2d

    first = group[0]
    *shapes, more = _problem.fullmatch(first.problem).groups()  # type: ignore[union-attr]
    x_shape, weight_shape = ([int(size) for size in shape.split("x")] for shape in shapes)

    def pair(name: str, otherwise: int) -> List[int]:
        found = re.search(rf" {name} (\d+)(?:x(\d+))?", more)
        return [int(found[1]), int(found[2] or found[1])] if found else [otherwise, otherwise]

    trains = any(entry.conv_pass != "forward" for entry in group)
    x = torch.randn(first.batch, *x_shape[1:], device=device, requires_grad=trains and "the input's" not in more)
    weight = torch.randn(*weight_shape, device=device, requires_grad=trains and "the weights'" not in more)
    bias = torch.randn(weight_shape[0], device=device) if "then bias" in more else None
    engines = re.findall(r"(\S+)\(", first.engines)
    torch.use_deterministic_algorithms(first.deterministic)
    y = conv2d(
        x, weight, bias, pair("stride", 1), pair("pad", 0), pair("dilation", 1), pair("groups", 1)[0], precision=first.precision,
        workspace_limit=first.workspace_limit, engine="measured" if len(engines) > 1 else f"measured:{engines[0]}",
    )
    if trains:
        torch.autograd.grad(y, [each for each in (x, weight) if each.requires_grad], torch.ones_like(y))
