"""Times training steps of our models' files in PyTorch on several GPUs by DistributedDataParallel, for comparison with
`twiddle time --gpus N` of the same file.

usage: python3 tests/peer/torch_ddp.py MODEL.yaml --gpus N --batch-size 128 [--precision fp32 tf32] [--layouts contiguous channels_last]
                                       [--seconds 2] [--json FILE] [--twiddle PROGRAM]

--batch-size is that of each GPU. Prints a line of JSON for each precision: milliseconds of a step on one GPU alone, and on all, in
the layout in which GPUs alone are fastest. With --json it writes rows for `scripts/results record` (`-`: to standard output, and
nothing else there). Needs PyTorch with NCCL, PyYAML and GPUs. DDP is used as its documentation advises for
networks that never change (a static graph, gradients that lie in its buckets). A step is forward, loss, backward and a fused SGD
update.
"""
import argparse
import copy
import json
import os
import socket

import torch
import torch.distributed as dist
from torch import nn

from torch_net import LAYOUTS, config_of, network
from torch_rows import SAMPLES, times_of, write_json

WARM = 5


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def step_of(net, outputs, config, batch, memory_format, rank):
    x = torch.randn(batch, *config["model"]["input"], device=rank).to(memory_format=memory_format)
    labels = torch.randint(0, outputs, (batch,), device=rank)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)

    def step():
        nn.functional.cross_entropy(net(x), labels).backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)

    return step


def ms_of(step, count):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        step()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / count


def samples_of(step, seconds):
    """Milliseconds; all samples together take the seconds. Each rank takes the same number of steps: they wait for each other."""
    ms_of(step, WARM)
    count = torch.tensor(1000 * seconds / SAMPLES / ms_of(step, 1), device="cuda")
    dist.broadcast(count, 0)
    return [ms_of(step, max(1, round(count.item()))) for _ in range(SAMPLES)]


def measure(config, precision, layouts, batch, seconds, rank):
    """The layout, and the times of this GPU alone and of all together."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    net = network(config)

    def times_in(layout, wrap=lambda net: net):
        there = wrap(copy.deepcopy(net).to(rank).to(memory_format=LAYOUTS[layout]))
        return times_of(samples_of(step_of(there, net.shape[0], config, batch, LAYOUTS[layout], rank), seconds))

    alone = [times_in(layout) for layout in layouts]
    of_all = torch.tensor([times["median_ms"] for times in alone], device=rank)
    dist.all_reduce(of_all)  # so that all choose the same
    fastest = of_all.argmin().item()
    together = times_in(layouts[fastest], lambda net: nn.parallel.DistributedDataParallel(
        net, device_ids=[rank], gradient_as_bucket_view=True, static_graph=True))
    return layouts[fastest], alone[fastest], together


def rows_of(config, precision, layout, arguments, alone, together):
    row = {"program": "pytorch_ddp", "network": config["name"], "precision": precision, "variant": "eager", "layout": layout}
    return [{**row, "batch": gpus * arguments.batch_size, "gpus": gpus, **times}
            for gpus, times in [(1, alone), (arguments.gpus, together)]]


def run(rank, arguments, config, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl", rank=rank, world_size=arguments.gpus)
    rows = []
    for precision in arguments.precision:
        layout, alone, together = measure(config, precision, arguments.layouts, arguments.batch_size, arguments.seconds, rank)
        rows += rows_of(config, precision, layout, arguments, alone, together)
        if rank == 0 and arguments.json != "-":
            print(json.dumps({"precision": precision, "layout": layout, "gpus": arguments.gpus, "batch_a_gpu": arguments.batch_size,
                              "alone_ms": alone["median_ms"], "together_ms": together["median_ms"]}), flush=True)
        torch.cuda.empty_cache()
    if rank == 0 and arguments.json:
        write_json(arguments.json, "cuda", rows)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32"], default=["fp32"])
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    arguments = parser.parse_args()
    config = config_of(arguments.twiddle, arguments.model)
    torch.multiprocessing.spawn(run, (arguments, config, free_port()), nprocs=arguments.gpus)


if __name__ == "__main__":
    main()
