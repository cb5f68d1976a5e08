"""Compares the losses of a training in fp32, bf16 and fp16, by Twiddle and by PyTorch (autocast), with PyTorch's in float64.

usage: python3 tests/peer/torch_losses.py models/resnet18.yaml [--set model.input=[3,64,64]] [--precision fp32 bf16 fp16] [--device cpu|cuda]
                                          [--batch 8] [--steps 200] [--rate 1e-3] [--seeds 1 2] [--engine rule] [--json FILE]

All runs have the same weights, batches and order; dropout and drop_path are off. The network in PyTorch is made from the same file, as for
torch_steps.py. In fp16 both programs have the same fixed loss scale. The error of a run is the mean of |loss - loss in float64| / loss in
float64 over its steps. The last lines are geometric means over the seeds. Without --json, the exit code is 1 if Twiddle's is larger than
PyTorch's in a precision of 16 bits. --json writes a row for each run, for `scripts/results record accuracy`; `-` is standard output.
"""
import argparse
import copy
import math
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from torch_net import config_of, named_tensors, network
from torch_rows import write_json
from torch_steps import optimizer_of, start, without_dropping

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
LOSS_SCALE = 1024
"""Of fp16. A scale that adapts skips steps, in PyTorch others than in Twiddle: at 65,536 PyTorch skips the first step of ConvNeXt-T."""


def batches_of(config, classes, arguments):
    """All steps' images and labels: a coarse pattern for each class, under noise."""
    shape = config["model"]["input"]
    labels = torch.randint(classes, (arguments.steps, arguments.batch))
    patterns = functional.interpolate(torch.randn(classes, shape[0], 4, 4), size=shape[1:])
    return (patterns[labels] + 2 * torch.randn(*labels.shape, *shape)) / 5**0.5, labels


def losses_of_pytorch(net, config, batches, precision, arguments):
    """The loss before each step."""
    optimizer = optimizer_of(net, config, arguments.rate)
    smoothing, losses = float(config["train"].get("label_smoothing", 0)), []
    scale = LOSS_SCALE if precision == "fp16" else 1
    for images, labels in zip(*batches):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(arguments.device, TYPES.get(precision), enabled=precision in TYPES):
            output = net(images.to(arguments.device, torch.float64 if precision == "float64" else torch.float32))
            loss = functional.cross_entropy(output, labels.to(arguments.device), label_smoothing=smoothing)
        losses.append(loss.item())
        (scale * loss).backward()
        for parameter in net.parameters():
            parameter.grad /= scale
        optimizer.step()
    return losses


def losses_of_twiddle(file, paths, precision, arguments):
    settings = [*arguments.set, f"precision={precision}", *[f"train.loss_scale={LOSS_SCALE}"] * (precision == "fp16")]
    subprocess.run([arguments.program, file, *paths, "--device", arguments.device, "--engine", arguments.engine, "--steps",
                    str(arguments.steps), "--rate", str(arguments.rate), *[word for each in settings for word in ("--set", each)]], check=True)
    return load_file(paths[-1])["losses"].tolist()


def error_of(losses, exact):
    return sum(abs(loss - right) / right for loss, right in zip(losses, exact, strict=True)) / len(exact)


def rows_of(file, config, seed, folder, arguments):
    torch.manual_seed(seed)
    net = network(config)
    start(net, config)
    batches = batches_of(config, net.shape[0], arguments)
    paths = [os.path.join(folder, f"{name}.safetensors") for name in ("weights", "batches", "ours")]
    save_file({name: tensor.detach().clone() for name, tensor in named_tensors(net).items()}, paths[0])
    save_file({"images": batches[0], "labels": batches[1].int()}, paths[1])

    def pytorch(precision):
        dtype = torch.float64 if precision == "float64" else torch.float32
        return losses_of_pytorch(copy.deepcopy(net).to(arguments.device, dtype), config, batches, precision, arguments)

    exact, rows = pytorch("float64"), []
    marks = [step for step in (1, 10, 50, 100, 200) if step <= arguments.steps]
    print(f"{config['name']}, seed {seed}: losses of steps {marks} in float64", *[f"{exact[step - 1]:.5f}" for step in marks], file=sys.stderr)
    for precision in arguments.precision:
        for program, losses in ("twiddle", losses_of_twiddle(file, paths, precision, arguments)), ("pytorch", pytorch(precision)):
            rows.append({"program": program, "network": config["name"], "batch": arguments.batch, "precision": precision, "seed": seed,
                         "error": error_of(losses, exact)})
            print(line_of(rows[-1]), file=sys.stderr, flush=True)
    return rows


def line_of(row):
    which = f"seed {row['seed']}" if "seed" in row else "mean"
    return f"{row['network']} {row['precision']} {row['program']:7s} {which:7s} {row['error']:.2e}"


def means_of(rows):
    """Geometric means over seeds."""
    errors = {}
    for row in rows:
        errors.setdefault((row["precision"], row["program"]), []).append(row["error"])
    first = {name: rows[0][name] for name in ("network", "batch")}
    return [{"program": program, **first, "precision": precision, "samples": len(each), "error": math.exp(sum(map(math.log, each)) / len(each))}
            for (precision, program), each in errors.items()]


def worse_than_pytorch(means):
    """Precisions of 16 bits in which Twiddle's error is larger."""
    errors = {(row["precision"], row["program"]): row["error"] for row in means}
    return [each for each in TYPES if (each, "twiddle") in errors and not errors[each, "twiddle"] <= errors[each, "pytorch"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--set", action="append", default=[], help="as in the program")
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    parser.add_argument("--program", default="build/release/tests/twiddle_numerics")
    parser.add_argument("--device", default="cpu", help="of both programs")
    parser.add_argument("--engine", default="rule", help="of Twiddle's convolutions")
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16", "fp16"], choices=["fp32", *TYPES])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    config = config_of(arguments.twiddle, arguments.file, arguments.set)
    without_dropping(config["model"]["layers"])
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for seed in arguments.seeds for row in rows_of(arguments.file, config, seed, folder, arguments)]
    means = means_of(rows)
    print("\n".join(map(line_of, means)), file=sys.stderr)
    if arguments.json:
        write_json(arguments.json, arguments.device, rows + means)
    worse = worse_than_pytorch(means)
    if worse and not arguments.json:
        sys.exit(f"errors larger than PyTorch's: {', '.join(worse)}")


if __name__ == "__main__":
    main()
