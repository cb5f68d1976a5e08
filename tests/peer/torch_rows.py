"""What the scripts here print with `--json`: rows of a run file of `scripts/results` (docs/formats.md), with device and versions."""
import json
import sys

import torch

SAMPLES = 11  # of a time


def times_of(samples):
    """Of milliseconds; nearest samples, as `twiddle time` has them."""
    def quantile(share):
        return sorted(samples)[round(share * (len(samples) - 1))]

    return {"median_ms": quantile(0.5), "p10_ms": quantile(0.1), "p90_ms": quantile(0.9), "samples": len(samples)}


def write_json(file, device, rows):
    versions = {"pytorch": torch.__version__, "pytorch_cuda": torch.version.cuda}
    if device == "cuda":
        device = f"cuda:{torch.cuda.current_device()}: {torch.cuda.get_device_name()}"
        versions["pytorch_cudnn"] = str(torch.backends.cudnn.version())
        versions["pytorch_nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    text = json.dumps({"device": device, "versions": versions, "rows": rows}, indent=2) + "\n"
    if file == "-":
        sys.stdout.write(text)
    else:
        with open(file, "w", encoding="utf-8") as result:
            result.write(text)
