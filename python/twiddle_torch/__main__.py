"""python -m twiddle_torch [COMMAND]

Without a command: what is here, and whether it works.
  choices  the measured choices that are kept, and in which file
  clear    deletes that file: each choice is measured again when it is next needed
  tune     measures again, now, what the file knows of this machine, as after a run on a busy one
"""

import os
import sys
import time

import torch
import torch.nn.functional as F

import twiddle_torch
from twiddle_torch import _cache


def self_test(device: str) -> bool:
    """A depthwise 31x31 layer: errors of the three passes against float64, times of forward and backward next to PyTorch's."""
    torch.manual_seed(0)
    batch, channels = (1, 16) if device == "cpu" else (4, 64)  # PyTorch takes about 10 ns per product on a CPU
    plane = batch, channels, 32, 32
    x, weight, grad = (torch.randn(*shape, device=device) for shape in (plane, (channels, 1, 31, 31), plane))
    x.requires_grad_(), weight.requires_grad_()
    names = "forward", "backward_input", "backward_weight"

    def step(conv, *inputs):
        y = conv(*inputs, padding=15, groups=channels)
        return (y, *torch.autograd.grad(y, inputs, grad.to(y.dtype)))

    def seconds(conv):
        step(conv, x, weight)
        _wait(device)
        start = time.perf_counter()
        for _ in range(3):
            step(conv, x, weight)
        _wait(device)
        return (time.perf_counter() - start) / 3

    reference = step(F.conv2d, *(t.detach().double().requires_grad_() for t in (x, weight)))
    results = step(twiddle_torch.conv2d, x, weight)
    errors = [((a - b).norm() / b.norm()).item() for a, b in zip(results, reference)]
    printed = ", ".join(f"{name} {error:.1e}" for name, error in zip(names, errors))
    ours, theirs = seconds(twiddle_torch.conv2d), seconds(F.conv2d)
    fine = max(errors) <= 2e-6
    print(f"  31x31 depthwise, {batch}x{channels}x32x32: errors {printed}: {'fine' if fine else 'TOO LARGE'}")
    print(f"  forward and backward {ours * 1e3:.2f} ms, torch.nn.functional.conv2d {theirs * 1e3:.2f} ms")
    return fine


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def show_choices() -> int:
    found = _cache.entries()
    print(f"{_cache.file()}: {len(found)} choices")
    for entry in found:
        when = ", forward alone" if entry.evaluates else ""
        print(f"  {entry.device}: {entry.conv_pass}{when}, batch {entry.batch}, {entry.problem}, {entry.precision}: "
              f"{entry.plan}, {entry.milliseconds} ms ({entry.build})")
    return 0


def clear() -> int:
    file = _cache.file()
    if os.path.exists(file):
        os.remove(file)
        print(f"{file} deleted")
    else:
        print(f"{file} does not exist")
    return 0


def tune() -> int:
    left = _cache.tune()
    for choice in twiddle_torch.choices():
        print("  {device} {pass} of {problem}, {precision}: {plan}, {reason}".format(**choice))
    if left:
        print(f"{left} choices of other devices, thread counts or builds stay as they are")
    return 0


def main() -> int:
    commands = {"choices": show_choices, "clear": clear, "tune": tune}
    if len(sys.argv) > 1:
        if len(sys.argv) > 2 or sys.argv[1] not in commands:
            asks = sys.argv[1] in ("-h", "--help")
            print(__doc__.rstrip(), file=sys.stdout if asks else sys.stderr)
            return 0 if asks else 2
        return commands[sys.argv[1]]()
    return report()


def report() -> int:
    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    print(f"twiddle_torch {twiddle_torch.__version__}, PyTorch {torch.__version__} ({cuda}), Python {sys.version.split()[0]}")
    for line in twiddle_torch.devices():
        print(line)
    fine = True
    for device in ["cpu"] + (["cuda"] if torch.cuda.is_available() and len(twiddle_torch.devices()) > 1 else []):
        print(f"self-test on {device}:")
        fine = self_test(device) and fine
    for choice in twiddle_torch.choices():
        print("  {device} {pass}: {plan}, {reason}".format(**choice))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
