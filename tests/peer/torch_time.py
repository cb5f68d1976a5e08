"""Times training steps of our models' files in PyTorch, to compare with `twiddle time` of the same file in one run.

usage: python3 tests/peer/torch_time.py models/alexnet.yaml ... [--batch-size 128] [--precision fp32 tf32 bf16] [--compile] [--graph]
                                        [--layouts contiguous channels_last] [--device cpu] [--threads N] [--json FILE] [--wait]
                                        [--twiddle build/release/apps/twiddle]

Needs PyTorch, PyYAML and, without `--device cpu`, a GPU. A step is forward, loss, backward and a fused SGD update, on one random
batch in the device's memory; cuDNN's benchmark mode is on. bf16 is autocast with weights in fp32. --graph also captures the whole
step in a CUDA graph and times its replays. Prints the median of 11 samples (10th to 90th percentile) in the fastest configuration.
torch_net.py makes the network from the file. The memory is the peak of a step, as `twiddle time` reports it. --json writes a row for
each configuration, for `scripts/results record`; `-` is standard output. --wait prints `ready` before the first step, after the
compilation, and continues after a line on standard input: scripts/time_networks compiles networks while another one is timed.
"""
import argparse
import contextlib
import gc
import os
import sys
import time
import traceback

import torch
from torch import nn

from torch_net import LAYOUTS, config_of, network
from torch_rows import SAMPLES, times_of, write_json

WARM = 5  # steps


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


def samples_of(step, device, warm=WARM, budget_ms=500):
    milliseconds = milliseconds_on_gpu if device == "cuda" else milliseconds_on_cpu
    milliseconds(step, warm)
    steps = max(1, min(40, int(budget_ms / SAMPLES / milliseconds(step, 1))))
    return [milliseconds(step, steps) / steps for _ in range(SAMPLES)]


class Turn:
    """Waits once for a line on standard input, if other processes use the device."""

    def __init__(self, waits):
        self.waits = waits

    def take(self):
        if self.waits:
            print("ready", flush=True)
            if not sys.stdin.readline():
                sys.exit("standard input was closed before the turn came")
        self.waits = False


def compiled(net, turn):
    """torch.compile with its default backend. Takes the turn after the compilation of both passes, before their first run."""
    def backend(graph, inputs):
        code = torch._dynamo.lookup_backend("inductor")(graph, inputs)
        turn.take()
        return code

    return torch.compile(net, backend=backend)


def replay_of(step, weights):
    """Captures a step in a CUDA graph. Returns the function that replays it, and the memory at the peak.

    Earlier steps must have run on the current stream, which must not be the default one: a capture must neither benchmark
    algorithms nor load kernels. A step begins without gradients, so the captured backward pass writes them instead of adding
    to them.
    """
    gc.collect()  # during a capture, it could free what was used on the stream
    torch.cuda.reset_peak_memory_stats()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        step()
    peak_bytes = torch.cuda.max_memory_allocated()
    before = weights.detach().clone()
    graph.replay()
    if torch.equal(before, weights):
        raise RuntimeError("a replay of the captured step does not change the weights")
    return graph.replay, peak_bytes


def step_of(config, precision, layout, arguments, turn):
    """Returns a step of a new network, and the last of its weights."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.compiler.reset()  # all networks run the same Python, of which PyTorch keeps a limited number of compiled versions
    device, memory_format = arguments.device, LAYOUTS[layout]
    if device == "cuda":
        torch.cuda.empty_cache()
    net = network(config)
    classes = net.shape[0]
    for module in net.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = True  # as in PyTorch's own networks
    net = net.to(device).to(memory_format=memory_format)
    x = torch.randn(arguments.batch_size, *config["model"]["input"], device=device).to(memory_format=memory_format)
    labels = torch.randint(0, classes, (arguments.batch_size,), device=device)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
    call = compiled(net, turn) if arguments.compile else net

    def step():
        # Each weight is cast once per step. A cache of casts must not outlive a capture.
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16", cache_enabled=False):
            loss = nn.functional.cross_entropy(call(x), labels)
        loss.backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)

    return step, list(net.parameters())[-1]


def measure(step, weights, arguments):
    """Yields the times, and on a GPU the memory at the peak: of steps that Python launches, then of replayed ones."""
    times = times_of(samples_of(step, arguments.device))
    if arguments.device == "cpu":
        yield times
        return
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    yield {**times, "peak_bytes": torch.cuda.max_memory_allocated()}
    if arguments.graph:
        replay, peak_bytes = replay_of(step, weights)
        yield {**times_of(samples_of(replay, arguments.device, warm=0)), "peak_bytes": peak_bytes}


def rows_of(config, precision, layout, arguments, turn):
    row = {"program": "pytorch", "network": config["name"], "batch": arguments.batch_size, "precision": precision, "layout": layout}
    if arguments.device == "cpu":
        row["threads"] = torch.get_num_threads()
    variants = (["compiled", "compiled_graph"] if arguments.compile else ["eager", "graph"])[:1 + arguments.graph]
    rows = []
    try:
        # A capture cannot use the default stream. Earlier steps run there too: autograd remembers the stream of a weight.
        with torch.cuda.stream(torch.cuda.Stream()) if arguments.device == "cuda" else contextlib.nullcontext():
            step, weights = step_of(config, precision, layout, arguments, turn)
            if not arguments.compile:
                turn.take()
            for times in measure(step, weights, arguments):
                rows.append({**row, "variant": variants[len(rows)], **times})
    except RuntimeError as error:  # such as too little memory
        traceback.print_exc()
        failed = {"median_ms": None, "reason": (str(error).splitlines() or [type(error).__name__])[0]}
        rows += [{**row, "variant": variant, **failed} for variant in variants[len(rows):]]
    return rows


def line_of(path, rows):
    """The fastest of one network and precision."""
    measured = [row for row in rows if row["median_ms"] is not None]
    best = min(measured, key=lambda row: row["median_ms"]) if measured else rows[0]
    result = "{median_ms:9.3f} ms ({p10_ms:.3f} to {p90_ms:.3f})".format(**best) if measured else f"failed: {best['reason']}"
    peak = f" {best['peak_bytes'] / 2**30:6.2f} GiB at the peak" if "peak_bytes" in best else ""
    return (f"{os.path.basename(path):24s} {best['precision']} {best['variant']:14s} {best['layout']:13s} batch {best['batch']} "
            f"{result}{peak}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32", "bf16"], default=["fp32"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--graph", action="store_true", help="also capture the whole step in a CUDA graph")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--threads", type=int, help="of a CPU; all cores")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--wait", action="store_true", help="print `ready` before the first step, and wait for a line")
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_time.py needs a GPU, or --device cpu")
    if arguments.graph and arguments.device == "cpu":
        sys.exit("--graph needs a GPU")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rows, turn = [], Turn(arguments.wait)
    for path in arguments.models:
        config = config_of(arguments.twiddle, path)
        for precision in arguments.precision:
            found = [row for layout in arguments.layouts for row in rows_of(config, precision, layout, arguments, turn)]
            rows += found
            if arguments.json != "-":
                print(line_of(path, found), flush=True)
    if arguments.json:
        write_json(arguments.json, arguments.device, rows)


if __name__ == "__main__":
    main()
