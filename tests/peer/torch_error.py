"""Measures the errors of convolutions by PyTorch and by `twiddle conv` on the same random operands, against float64.

usage: python3 tests/peer/torch_error.py [LAYER ...] [--batch-size N] [--precision fp32 tf32 bf16] [--layouts contiguous channels_last]
                                         [--device cpu] [--json FILE] [--twiddle build/release/apps/twiddle]

Needs PyTorch, PyYAML, safetensors and, without `--device cpu`, a GPU. Operands are normal random numbers; in bf16 they are rounded before
anything is computed, so float64 has the same operands. The error is the relative L2 error of the whole result of a pass. PyTorch: cuDNN's
benchmark mode, in bf16 all tensors in bf16. Twiddle: the fastest plan (`--engine measured`); in bf16 its `output` and `grad_input` are
rounded to bf16, as a network stores them. --json writes a row for each pass, for `scripts/results record accuracy`; `-` is standard output.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from torch_net import LAYOUTS
from torch_rows import write_json

PASSES = {"forward": "output", "backward_input": "grad_input", "backward_weight": "grad_weight"}
"""And the names of their results in files of `twiddle conv`."""
LAYERS = {"AlexNet conv2": (128, 64, 27, 192, 5, 2), "VGG-E conv3.2": (64, 256, 56, 256, 3, 1), "ResNet-50 1x1": (64, 256, 56, 64, 1, 0),
          "OverFeat conv3": (128, 256, 12, 512, 3, 1)}
"""Batch, channels, height and width, filters, kernel, pad."""


def operands_of(batch, channels, size, filters, kernel, pad, precision, device):
    """x, the weights, and a gradient of the output."""
    torch.manual_seed(0)
    out = size + 2 * pad - kernel + 1
    shapes = [(batch, channels, size, size), (filters, channels, kernel, kernel), (batch, filters, out, out)]
    operands = [torch.randn(shape).to(device) for shape in shapes]
    return [each.bfloat16().float() for each in operands] if precision == "bf16" else operands


def results_of(operands, pad):
    """By pass, in the type and layout of the operands."""
    x, w, grad = [each.detach() for each in operands]
    x.requires_grad_()
    w.requires_grad_()
    y = functional.conv2d(x, w, padding=pad)
    return dict(zip(PASSES, [y.detach(), *torch.autograd.grad(y, [x, w], grad)]))


def results_of_pytorch(operands, pad, precision, memory_format):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark = True
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return results_of([each.to(dtype=dtype, memory_format=memory_format) for each in operands], pad)


def results_of_twiddle(program, operands, pad, precision, device):
    """By pass, and the plans."""
    with tempfile.TemporaryDirectory() as folder:
        file, out, report = (os.path.join(folder, name) for name in ["in.safetensors", "out.safetensors", "report.json"])
        save_file({name: each.contiguous() for name, each in zip(["input", "weight", "grad_output"], operands)}, file)
        subprocess.run([program, "conv", file, out, "--pad", str(pad), "--precision", precision, "--device", device, "--engine", "measured",
                        "--repeat", "1", "--json", report, "-q"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        arrays = load_file(out)
        with open(report, encoding="utf-8") as text:
            plans = {each["pass"]: each["engine"] for each in json.load(text)["passes"]}
    results = {each: arrays[name].to(device) for each, name in PASSES.items()}
    if precision == "bf16":
        results.update({each: results[each].bfloat16() for each in ["forward", "backward_input"]})
    return results, plans


def error_of(result, exact):
    return ((result.double() - exact).norm() / exact.norm()).item()


def rows_of(layer, precision, arguments):
    batch, channels, size, filters, kernel, pad = LAYERS[layer]
    batch, device = arguments.batch_size or batch, arguments.device
    row = {"layer": layer, "problem": f"{batch}x{channels}x{size}x{size} * {filters}x{channels}x{kernel}x{kernel} pad {pad}",
           "precision": precision}
    operands = operands_of(batch, channels, size, filters, kernel, pad, precision, device)
    exact = results_of([each.double() for each in operands], pad)

    def rows_with(more, compute):
        try:
            results, plans = compute()
            return [{**row, **more, "pass": each, **plans.get(each, {}), "error": error_of(results[each], exact[each])} for each in PASSES]
        except (RuntimeError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[0]
            return [{**row, **more, "pass": each, "error": None, "reason": reason} for each in PASSES]

    def ours():
        results, plans = results_of_twiddle(arguments.twiddle, operands, pad, precision, device)
        return results, {each: dict(zip(["engine", "plan"], name.split(":", 1))) for each, name in plans.items()}

    rows = rows_with({"program": "twiddle"}, ours)
    for layout in arguments.layouts:
        rows += rows_with({"program": "pytorch", "layout": layout},
                          lambda: (results_of_pytorch(operands, pad, precision, LAYOUTS[layout]), {}))
    return rows


def line_of(row):
    error = f"{row['error']:.2e}" if row["error"] is not None else f"failed: {row['reason']}"
    return f"{row['layer']:15s} {row['precision']} {row['pass']:15s} {row['program']:7s} {row.get('layout', row.get('engine', '')):13s} {error}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("layers", nargs="*", metavar="LAYER", default=[], help=", ".join(LAYERS) + "; all without a name")
    parser.add_argument("--batch-size", type=int, help="instead of the layer's own")
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32", "bf16"], default=["fp32", "tf32", "bf16"])
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    arguments = parser.parse_args()
    unknown = set(arguments.layers) - set(LAYERS)
    if unknown:
        parser.error(f"unknown layer '{min(unknown)}'; known are {', '.join(LAYERS)}")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_error.py needs a GPU, or --device cpu")
    rows = []
    for layer in arguments.layers or LAYERS:
        for precision in arguments.precision:
            found = rows_of(layer, precision, arguments)
            rows += found
            if arguments.json != "-":
                print("\n".join(map(line_of, found)), flush=True)
    if arguments.json:
        write_json(arguments.json, arguments.device, rows)


if __name__ == "__main__":
    main()
