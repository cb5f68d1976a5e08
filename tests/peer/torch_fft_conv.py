#!/usr/bin/env python3
"""Convolutions as anyone would write them with PyTorch's transforms: rfft2, bmm, irfft2, crop.

usage: torch_fft_conv.py [NAME ...]
For each layer (stride 1) the milliseconds of forward, backward_input and backward_weight, fp32, on the GPU: the best of two
Fourier sizes, the smallest one of factors 2, 3, 5 and 7 and the next power of two. Also prints the relative error of forward
against a convolution in double on a part of the batch. Prints a Markdown table.
"""
import sys
import torch
import torch.nn.functional as functional

LAYERS = {  # name: (batch, channels, filters, plane, kernel, pad)
    "L1": (128, 3, 96, 128, 11, 0), "L2": (128, 64, 64, 64, 9, 0), "L2b": (128, 64, 128, 64, 9, 0),
    "L3": (128, 128, 128, 32, 9, 0), "L4": (128, 128, 128, 16, 7, 0), "L5": (128, 384, 384, 13, 3, 0),
    "dieleman1": (64, 3, 128, 96, 16, 0), "dieleman2": (64, 128, 64, 32, 8, 0), "dieleman3": (128, 32, 64, 54, 6, 0),
    "dieleman4": (128, 128, 128, 16, 8, 0), "dieleman5": (128, 1024, 128, 32, 4, 0),
    "mathieu1": (128, 3, 96, 32, 11, 0), "mathieu2": (128, 96, 256, 32, 7, 0), "mathieu3": (128, 256, 384, 16, 5, 0),
    "mathieu4": (128, 384, 384, 16, 5, 0), "mathieu5": (128, 384, 384, 16, 3, 0),
    "alexnet2": (128, 64, 192, 27, 5, 2), "alexnet3": (128, 192, 384, 13, 3, 1), "alexnet4": (128, 384, 256, 13, 3, 1),
    "alexnet5": (128, 256, 256, 13, 3, 1), "overfeat2": (128, 96, 256, 28, 5, 0), "overfeat3": (128, 256, 512, 12, 3, 1),
    "overfeat4": (128, 512, 1024, 12, 3, 1), "overfeat5": (128, 1024, 1024, 12, 3, 1),
}


def smooth(n):
    while True:
        rest = n
        for factor in (2, 3, 5, 7):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1


def spectrum(planes, n):
    bins = torch.fft.rfft2(planes, s=(n, n))
    return bins.permute(2, 3, 0, 1).reshape(-1, planes.shape[0], planes.shape[1])


def planes(spectra, n):
    bins = spectra.reshape(n, n // 2 + 1, *spectra.shape[1:]).permute(2, 3, 0, 1)
    return torch.fft.irfft2(bins, s=(n, n))


def forward(x, w, n, pad, out):
    y = planes(torch.bmm(spectrum(x, n), spectrum(w, n).conj().transpose(1, 2)), n)
    return torch.roll(y, (pad, pad), (2, 3))[:, :, :out, :out].contiguous()


def backward_input(grad_y, w, n, pad, size):
    return planes(torch.bmm(spectrum(grad_y, n), spectrum(w, n)), n)[:, :, pad:pad + size, pad:pad + size].contiguous()


def backward_weight(x, grad_y, n, pad, kernel):
    grad_w = planes(torch.bmm(spectrum(grad_y, n).conj().transpose(1, 2), spectrum(x, n)), n)
    return torch.roll(grad_w, (pad, pad), (2, 3))[:, :, :kernel, :kernel].contiguous()


def milliseconds(work):
    for _ in range(3):
        work()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(5):
        start.record()
        for _ in range(5):
            work()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / 5)
    return sorted(times)[2]


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print("| layer | n | forward, ms | backward_input, ms | backward_weight, ms | together, ms | error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in sys.argv[1:] or LAYERS:
        batch, channels, filters, size, kernel, pad = LAYERS[name]
        out = size + 2 * pad - kernel + 1
        x = torch.randn(batch, channels, size, size, device="cuda")
        w = torch.randn(filters, channels, kernel, kernel, device="cuda")
        grad_y = torch.randn(batch, filters, out, out, device="cuda")
        best = None
        for n in sorted({smooth(size + pad), 1 << (size + pad - 1).bit_length()}):
            times = [milliseconds(lambda: forward(x, w, n, pad, out)),
                     milliseconds(lambda: backward_input(grad_y, w, n, pad, size)),
                     milliseconds(lambda: backward_weight(x, grad_y, n, pad, kernel))]
            if best is None or sum(times) < sum(best[1]):
                best = (n, times)
        n, times = best
        exact = functional.conv2d(x[:2].double(), w.double(), padding=pad)
        error = ((forward(x, w, n, pad, out)[:2] - exact).norm() / exact.norm()).item()
        print(f"| {name} | {n} | " + " | ".join(f"{t:.3f}" for t in times) + f" | {sum(times):.3f} | {error:.1e} |", flush=True)
        del x, w, grad_y
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
