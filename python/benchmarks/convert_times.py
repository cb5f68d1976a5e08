"""Training iterations of well-known networks, by PyTorch and after `twiddle_torch.convert`.

usage: python convert_times.py alexnet vgg19 ... [--device cuda] [--precision fp32 tf32] [--min-kernel 1 5] [--engine rule]
                               [--compile] [--batch-size N] [--seconds 1] [--apart] [--converted-alone]

An iteration is forward, loss, backward and a fused SGD update on one random batch; times are medians of five samples, and
cuDNN's benchmark mode is on. The loss of the first step is printed next to PyTorch's with the same weights. --apart: also with the
same plans, but without spectra kept from the forward pass for the backward passes.
"""

import argparse
import time

import torch
import torch.nn.functional as F
from networks import networks

import twiddle_torch


keep_spectra = twiddle_torch.ops._Spectra


class Training:
    def __init__(self, make, batch, image, device, compiled, convert=None):
        torch.manual_seed(1)
        self.net = make().to(device)
        if convert is not None:
            twiddle_torch.convert(self.net, file=None, **convert)
        self.call = torch.compile(self.net) if compiled else self.net
        self.x, self.labels = torch.randn(batch, *image, device=device), torch.randint(2, (batch,), device=device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-3, momentum=0.9, fused=True)

    def step(self):
        loss = F.cross_entropy(self.call(self.x), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss


def seconds_of(work, device):
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(training, device, budget):
    """Milliseconds of an iteration, the first loss, seconds until the second step, and GiB at the peak."""
    losses = []
    first = seconds_of(lambda: losses.append(training.step().item()), device)
    once = min(seconds_of(training.step, device) for _ in range(2))
    steps = max(1, min(40, int(budget / 5 / once)))
    samples = sorted(seconds_of(lambda: [training.step() for _ in range(steps)], device) / steps for _ in range(5))
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        training.step()
        torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0
    return samples[2] * 1e3, losses[0], first, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", choices=networks)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", nargs="+", default=["fp32", "tf32"])
    parser.add_argument("--min-kernel", nargs="+", type=int, default=[5])
    parser.add_argument("--engine", default=None)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--converted-alone", action="store_true")
    parser.add_argument("--choices", action="store_true", help="print which plans were chosen")
    a = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    name = torch.cuda.get_device_name() if a.device == "cuda" else "cpu"
    print(f"{name}, PyTorch {torch.__version__}, twiddle_torch {twiddle_torch.__version__}", flush=True)
    for network in a.networks:
        make, batch, image = networks[network]
        for precision in a.precision:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
            before = None
            runs = [] if a.converted_alone else [(None, False)]
            runs += [(least, apart) for least in a.min_kernel for apart in ([False, True] if a.apart else [False])]
            for least, apart in runs:
                convert = None if least is None else dict(min_kernel=least, precision=precision, engine=a.engine)
                twiddle_torch.ops._Spectra = twiddle_torch.ops._release if apart else keep_spectra
                training = Training(make, a.batch_size or batch, image, a.device, a.compile, convert)
                ms, loss, first, peak = measure(training, a.device, a.seconds)
                before = before or ms
                who = "PyTorch" if least is None else f"convert, kernels from {least}{', apart' if apart else ''}"
                how = "compiled" if a.compile else "eager"
                print(f"{network:14s} {precision} {how:8s} {who:30s} {ms:9.2f} ms {before / ms:6.2f} times as fast, "
                      f"first loss {loss:.6f}, first step {first:.1f} s, {peak:.2f} GiB", flush=True)
                del training
                if a.device == "cuda":
                    torch.cuda.empty_cache()
    if a.choices:
        for choice in twiddle_torch.choices():
            print("\t".join(choice.values()))


if __name__ == "__main__":
    main()
