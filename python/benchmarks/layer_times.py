"""One layer, forward and backward: PyTorch's convolution, torch.fft, and twiddle_torch; milliseconds, errors against float64
and memory at the peak.

usage: python layer_times.py [--device cuda] [--seconds 0.3] [--set depthwise dense] [--engine rule]

The first rows of depthwise are the shapes on which NVIDIA shows fused_fft_conv2d of subquadratic-ops-torch.
"""

import argparse
import functools
import time

import torch
import torch.nn.functional as F

import twiddle_torch

# batch, channels, filters, plane, kernel, groups
layers = {
    "depthwise": [(8, 768, 768, 16, 15, 768), (8, 768, 768, 32, 31, 768), (8, 768, 768, 64, 63, 768), (64, 384, 384, 32, 31, 384),
                  (64, 128, 128, 56, 31, 128), (64, 96, 96, 56, 7, 96)],
    "dense": [(64, 64, 64, 32, 9, 1), (64, 64, 192, 27, 5, 1), (64, 256, 256, 28, 3, 1), (64, 512, 512, 14, 3, 1)],
    "depthwise on a CPU": [(4, 64, 64, 32, 7, 64), (4, 64, 64, 32, 13, 64), (4, 64, 64, 32, 31, 64)],
    "dense on a CPU": [(4, 64, 64, 32, 5, 1), (4, 64, 64, 32, 9, 1), (4, 64, 64, 32, 13, 1)],
}


def by_torch_fft(x, weight, padding, groups):
    """The convolution as a composition of torch.fft calls: one large transform of each plane."""
    size = [x.shape[i] + 2 * padding for i in (2, 3)]
    spectrum = torch.fft.rfft2(F.pad(x, [padding] * 4), s=size)
    kernel = torch.fft.rfft2(weight, s=size).conj()
    if groups == x.shape[1]:
        product = spectrum * kernel[:, 0]
    else:
        product = torch.einsum("nchw,kchw->nkhw", spectrum, kernel)
    return torch.fft.irfft2(product, s=size)[..., : x.shape[2], : x.shape[3]]


def step(conv, x, weight, grad):
    y = conv(x, weight)
    return y, *torch.autograd.grad(y, (x, weight), grad.to(y.dtype))


def time_of(work, device, budget):
    def seconds(calls):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / calls

    seconds(2)
    calls = max(1, min(200, int(budget / 5 / seconds(1))))
    return sorted(seconds(calls) for _ in range(5))[2] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--engine", default=None)
    parser.add_argument("--set", nargs="+", default=["depthwise", "dense"], choices=layers)
    a = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name() if a.device == 'cuda' else 'cpu, ' + str(torch.get_num_threads()) + ' threads'}, PyTorch {torch.__version__}")
    for name in a.set:
        for batch, channels, filters, plane, kernel, groups in layers[name]:
            torch.manual_seed(1)
            x = torch.randn(batch, channels, plane, plane, device=a.device, requires_grad=True)
            weight = torch.randn(filters, channels // groups, kernel, kernel, device=a.device, requires_grad=True)
            grad, padding = torch.randn(batch, filters, plane, plane, device=a.device), kernel // 2
            ours = functools.partial(twiddle_torch.conv2d, padding=padding, groups=groups, engine=a.engine)
            ways = {
                "PyTorch, fp32": (False, lambda x, w: F.conv2d(x, w, padding=padding, groups=groups)),
                "PyTorch, tf32": (True, lambda x, w: F.conv2d(x, w, padding=padding, groups=groups)),
                "torch.fft": (False, lambda x, w: by_torch_fft(x, w, padding, groups)),
                "twiddle_torch, fp32": (False, ours),
                "twiddle_torch, tf32": (False, functools.partial(ours, precision="tf32")),
            }
            doubles = [t.detach()[:4 if t is not weight else None].double().requires_grad_() for t in (x, weight, grad)]
            right = step(ways["PyTorch, fp32"][1], doubles[0], doubles[1], doubles[2].detach())
            print(f"{name}: {batch} x {channels} to {filters}, {plane}x{plane}, {kernel}x{kernel}", flush=True)
            for way, (tf32, conv) in ways.items():
                if a.device == "cpu" and "tf32" in way:
                    continue
                torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
                try:
                    few = step(conv, *(t.detach()[:4 if t is not weight else None].requires_grad_() for t in (x, weight)), grad[:4])
                    error = max(((p.double() - q).norm() / q.norm()).item() for p, q in zip(few, right))
                    ms = time_of(lambda: step(conv, x, weight, grad), a.device, a.seconds)
                except RuntimeError as failure:
                    print(f"  {way:20s} failed: {str(failure).splitlines()[0][:100]}")
                    continue
                peak = ""
                if a.device == "cuda":
                    held = torch.cuda.memory_allocated()
                    torch.cuda.reset_peak_memory_stats()
                    step(conv, x, weight, grad)
                    torch.cuda.synchronize()
                    peak = f", {(torch.cuda.max_memory_allocated() - held) / 2**20:.0f} MiB in addition to the operands"
                print(f"  {way:20s} {ms:9.3f} ms, error {error:.1e}{peak}", flush=True)
            del x, weight, grad, doubles, right
            if a.device == "cuda":
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
