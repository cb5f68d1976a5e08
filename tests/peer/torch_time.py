"""Times training steps of our models' files in PyTorch, to stand beside `twiddle time` of the same file in one run.

usage: python3 tests/peer/torch_time.py models/alexnet.yaml ... [--batch-size 128] [--precision fp32 tf32] [--compile]
                                        [--layouts contiguous channels_last] [--device cpu] [--threads N] [--json FILE]
                                        [--twiddle build/release/apps/twiddle]

Needs PyTorch, PyYAML and, without `--device cpu`, a GPU. A step is forward, loss, backward and a fused SGD update, on one random
batch that lies on the device; cuDNN's benchmark mode is on. Prints the median of 11 samples, in the layout that is faster. The
network is made from the file by torch_net.py. The memory is the most that was in use at once in one more step, as `twiddle time`
reports it. --json writes a row for each layout, for `scripts/results record`; `-` is standard output.
"""
import argparse
import os
import sys
import time

import torch
from torch import nn

from torch_net import LAYOUTS, config_of, network
from torch_rows import SAMPLES, times_of, write_json


def milliseconds_on_gpu(step, steps):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(steps):
        step()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop)


def milliseconds_on_cpu(step, steps):
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return 1000 * (time.perf_counter() - start)


def samples_of(step, device, warm=5, budget_ms=500):
    milliseconds = milliseconds_on_gpu if device == "cuda" else milliseconds_on_cpu
    milliseconds(step, warm)
    steps = max(1, min(40, int(budget_ms / SAMPLES / milliseconds(step, 1))))
    return [milliseconds(step, steps) / steps for _ in range(SAMPLES)]


def measure(config, precision, batch, compiled, memory_format, device):
    """Times, and the memory at the peak where it is known."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.compiler.reset()  # all networks run the same Python, of which only so many compiled forms are kept
    net = network(config)
    classes = net.shape[0]
    for module in net.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = True  # as PyTorch's own networks have it
    net = net.to(device).to(memory_format=memory_format)
    x = torch.randn(batch, *config["model"]["input"], device=device).to(memory_format=memory_format)
    labels = torch.randint(0, classes, (batch,), device=device)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
    call = torch.compile(net) if compiled else net

    def step():
        nn.functional.cross_entropy(call(x), labels).backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)

    times = times_of(samples_of(step, device))
    if device == "cpu":
        return times
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return {**times, "peak_bytes": torch.cuda.max_memory_allocated()}


def row_of(config, precision, layout, arguments):
    row = {"program": "pytorch", "network": config["name"], "batch": arguments.batch_size, "precision": precision,
           "variant": "compiled" if arguments.compile else "eager", "layout": layout}
    if arguments.device == "cpu":
        row["threads"] = torch.get_num_threads()
    try:
        return {**row, **measure(config, precision, arguments.batch_size, arguments.compile, LAYOUTS[layout], arguments.device)}
    except RuntimeError as error:  # such as too little memory
        return {**row, "median_ms": None, "reason": (str(error).splitlines() or [type(error).__name__])[0]}
    finally:
        if arguments.device == "cuda":
            torch.cuda.empty_cache()


def line_of(path, rows):
    """The fastest of one network and precision."""
    measured = [row for row in rows if row["median_ms"] is not None]
    best = min(measured, key=lambda row: row["median_ms"]) if measured else rows[0]
    result = f"{best['median_ms']:9.3f} ms" if measured else f"failed: {best['reason']}"
    peak = f" {best['peak_bytes'] / 2**30:6.2f} GiB at the peak" if "peak_bytes" in best else ""
    return (f"{os.path.basename(path):24s} {best['precision']} {best['variant']:8s} {best['layout']:13s} batch {best['batch']} "
            f"{result}{peak}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32"], default=["fp32"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--threads", type=int, help="of a CPU; all cores")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_time.py needs a GPU, or --device cpu")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rows = []
    for path in arguments.models:
        config = config_of(arguments.twiddle, path)
        for precision in arguments.precision:
            found = [row_of(config, precision, layout, arguments) for layout in arguments.layouts]
            rows += found
            if arguments.json != "-":
                print(line_of(path, found), flush=True)
    if arguments.json:
        write_json(arguments.json, arguments.device, rows)


if __name__ == "__main__":
    main()
