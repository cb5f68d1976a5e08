"""Holds our augmentations against torchvision.transforms.v2's, on tensors of bytes.

usage: python3 tests/peer/torch_augment.py [--program build/release/tests/twiddle_augment] [--seeds 4000]

Needs torch, torchvision and safetensors. Operations with given parameters must make the same bytes of synthetic images, except for a
step of 1 where floats are truncated to bytes after sums in another order, and for pixels that lie just between two. What draws its
parameters does so for many seeds: a box or a share is read from our result, and torchvision is given the same; the parameters
themselves must be distributed as its are (Kolmogorov and Smirnov's distance, at a level of 0.1 %). Exit code 1 where a row
misses its bound.
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import torchvision
from safetensors.torch import load_file, save_file
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

MOST_APART = 0.03       # of all bytes, by 1
MOST_FAR_APART = 1e-4   # by more
SIZES = [(32, 32), (45, 60), (224, 224)]
FACTORS = [0.0, 0.3, 0.73, 1.0, 1.27, 1.9, 3.0]  # to an int torchvision multiplies bytes as bytes, which overflow
COLOURS = {
    "brightness": (F.adjust_brightness, FACTORS),
    "contrast": (F.adjust_contrast, FACTORS),
    "saturation": (F.adjust_saturation, FACTORS),
    "hue": (F.adjust_hue, [-0.5, -0.31, -0.1, 0.0, 0.05, 0.25, 0.5]),
}
MAGNITUDES = [1, 5, 9, 14, 22, 30]


class Table:
    def __init__(self):
        self.missed = []
        print("| ours compared with torchvision's | compared | different | by more than 1 | largest difference |")
        print("| --- | ---: | ---: | ---: | ---: |")

    def row(self, name, tally, ok):
        print(f"| {name} | {tally.compared:,} | {tally.different:,} | {tally.far:,} | {tally.largest:.2g} |"
              f"{'' if ok else ' MISSED'}", flush=True)
        if not ok:
            self.missed.append(name)


class Tally:
    """How far tensors are from each other, over many comparisons."""

    def __init__(self):
        self.compared, self.different, self.far, self.largest = 0, 0, 0, 0.0

    def add(self, ours, theirs):
        apart = (ours.double() - theirs.double()).abs()
        self.compared += apart.numel()
        self.different += int((apart > 0).sum())
        self.far += int((apart > 1).sum())
        self.largest = max(self.largest, float(apart.max()))

    def bytes_agree(self):
        return self.different <= MOST_APART * self.compared and self.far <= MOST_FAR_APART * self.compared


def ours_of(program, images, operations):
    """{operation: what our program makes of the images}."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("images", "results")]
        save_file({"images": images.float()}, paths[0])
        subprocess.run([program, *paths, *operations], check=True)
        return load_file(paths[1])


def pictures(height, width):
    """Bytes: noise, a smooth picture, a dark one with noise, one of few colours."""
    y, x = torch.meshgrid(torch.linspace(0, 1, height), torch.linspace(0, 1, width), indexing="ij")
    smooth = torch.stack([x, y, (x * y * 9).sin() ** 2]) * 230 + 10
    noise = torch.rand(3, height, width)
    few = (noise * 4).floor() * 60
    return torch.stack([noise * 256, smooth, smooth / 4 + noise * 20, few]).clamp(0, 255).to(torch.uint8)


def colours(table, program):
    for name, (function, parameters) in COLOURS.items():
        tally = Tally()
        for size in SIZES:
            images = pictures(*size)
            ours = ours_of(program, images, [f"{name}={parameter}" for parameter in parameters])
            for parameter in parameters:
                tally.add(ours[f"{name}={parameter}"], function(images, parameter))
        table.row(f"{name}, factors {parameters[0]:g} to {parameters[-1]:g}", tally, tally.bytes_agree())


def rand_augments(images, magnitude):
    """{(operation, sign): torchvision's result}."""
    augment = v2.RandAugment(num_ops=1)
    results = {}
    for operation, (magnitudes, signed) in augment._AUGMENTATION_SPACE.items():
        values = magnitudes(31, *images.shape[-2:])
        for sign in (1, -1) if signed else (1,):
            value = 0.0 if values is None else sign * float(values[magnitude])
            results[operation, sign] = augment._apply_image_or_video_transform(
                images, operation, value, interpolation=augment.interpolation, fill=augment._fill)
    return results


def nearest(results, result):
    return min(results, key=lambda each: float((each - result).abs().mean()))


def rand_augment(table, program):
    """The operation that a seed draws is unknown: torchvision's must each be one of ours, and each of ours one of its."""
    tallies, unmatched = {}, Tally()
    for size in SIZES:
        images = pictures(*size)
        for magnitude in MAGNITUDES:
            theirs = {drawn: result.float() for drawn, result in rand_augments(images, magnitude).items()}
            names = [f"rand_augment={magnitude},{seed}" for seed in range(150)]
            ours = []
            for result in ours_of(program, images, names).values():
                if not any(torch.equal(result, other) for other in ours):
                    ours.append(result)
            for (operation, _), result in theirs.items():
                tallies.setdefault(operation, Tally()).add(nearest(ours, result), result)
            for result in ours:
                each = Tally()
                each.add(result, nearest(list(theirs.values()), result))
                unmatched.add(torch.tensor(each.far), torch.tensor(0))
    for operation, tally in tallies.items():
        table.row(f"rand_augment: {operation}, magnitudes {MAGNITUDES[0]} to {MAGNITUDES[-1]}", tally, tally.bytes_agree())
    table.row("rand_augment: far bytes of our results compared with the nearest of these", unmatched, unmatched.largest <= 50)


def box_of(erased):
    """Top, left, height and width of what is zero in [channels, height, width]."""
    rows, columns = (erased == 0).all(0).nonzero(as_tuple=True)
    top, left = int(rows.min()), int(columns.min())
    return top, left, int(rows.max()) - top + 1, int(columns.max()) - left + 1


def random_erasing(table, program):
    images = torch.rand(1, 3, 50, 40) * 254 + 1
    tally, sides = Tally(), Tally()
    for area, aspect in [(0.02, 0.3), (0.1, 1), (0.33, 3), (0.2, 0.7), (0.07, 2.1)]:
        names = [f"random_erasing={area},{area},{aspect},{aspect},{seed}" for seed in range(50)]
        params = v2.RandomErasing(p=1, scale=(area, area), ratio=(aspect, aspect)).make_params([images[0]])
        for result in ours_of(program, images, names).values():
            top, left, height, width = box_of(result[0])
            sides.add(torch.tensor([height, width]), torch.tensor([params["h"], params["w"]]))
            tally.add(result[0], F.erase(images[0], top, left, params["h"], params["w"], params["v"]))
    table.row("random_erasing: sides of the box, at given areas and aspects", sides, sides.largest == 0)
    table.row("random_erasing: values", tally, tally.largest == 0)


def mixed(table, program):
    images = torch.rand(2, 3, 20, 24)
    for name, transform in (("mixup", v2.MixUp(num_classes=2)), ("cutmix", v2.CutMix(num_classes=2))):
        names = [f"{name}=1,{seed}" for seed in range(200)]
        ours = ours_of(program, images, names)
        values, shares = Tally(), Tally()
        for each in names:
            labels = torch.tensor([0, 1])
            if name == "mixup":
                drawn = {"lam": float(ours[each + ".shares"][0, 0])}
            else:
                rows, columns = (ours[each][0] != images[0]).all(0).nonzero(as_tuple=True)
                box = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1) if len(rows) else (0,) * 4
                drawn = {"box": box, "lam_adjusted": 1 - (box[2] - box[0]) * (box[3] - box[1]) / (20 * 24)}
            params = {"labels": labels, "batch_size": 2, **drawn}
            values.add(ours[each], transform.transform(images, params))
            shares.add(ours[each + ".shares"], transform.transform(labels, params))
        for what, tally in (("images", values), ("targets", shares)):
            table.row(f"{name}: {what}", tally, tally.largest <= 2e-7)


def distance_of_samples(a, b):
    """Kolmogorov and Smirnov's: the largest distance of two distribution functions."""
    a, b = a.double().sort().values, b.double().sort().values
    at = torch.cat([a, b])
    return float((torch.searchsorted(a, at, right=True) / len(a) - torch.searchsorted(b, at, right=True) / len(b)).abs().max())


def distributions(table, program, seeds):
    bound = math.sqrt(-math.log(0.001 / 2) / seeds)  # of two samples of one distribution, in all but 0.1 % of cases

    def row(name, ours, theirs):
        distance = distance_of_samples(torch.tensor(ours), torch.tensor(theirs))
        ok = distance <= bound
        print(f"| {name} | {seeds:,} | {distance:.3f} | {bound:.3f} |{'' if ok else ' MISSED'}", flush=True)
        if not ok:
            table.missed.append(name)

    print("\n| distributions | draws | distance | bound |\n| --- | ---: | ---: | ---: |")

    flat = torch.tensor([180, 90, 60], dtype=torch.uint8).view(1, 3, 1, 1).expand(1, 3, 4, 4).contiguous()
    flat[..., 2:] //= 2
    for index, name in enumerate(COLOURS):
        reach = [0.4 if i == index else 0 for i in range(4)]
        ours = ours_of(program, flat, [f"color_jitter={','.join(map(str, reach))},{seed}" for seed in range(seeds)])
        jitter = v2.ColorJitter(*reach)
        row(f"color_jitter: {name}", [float(each[0, 1].mean()) for each in ours.values()],
            [float(jitter(flat)[0, 1].float().mean()) for _ in range(seeds)])

    blank = torch.ones(1, 1, 32, 24)
    names = [f"random_erasing=0.02,0.33,0.3,3.3,{seed}" for seed in range(seeds)]
    boxes = [box_of(each[0]) for each in ours_of(program, blank, names).values()]
    draws = [v2.RandomErasing(p=1).make_params([blank[0]]) for _ in range(seeds)]
    for index, name in enumerate("ijhw"):
        row(f"random_erasing: {['top', 'left', 'height', 'width'][index]}", [box[index] for box in boxes],
            [draw[name] for draw in draws])

    batch = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 1, 32, 24).contiguous()
    for name, transform in (("mixup", v2.MixUp), ("cutmix", v2.CutMix)):
        for alpha in (0.2, 0.8, 1.0):
            ours = ours_of(program, batch, [f"{name}={alpha},{seed}" for seed in range(seeds)])
            drawn = [transform(alpha=alpha, num_classes=2).make_params([batch]) for _ in range(seeds)]
            row(f"{name}: lambda, alpha {alpha}", [float(each[0, 0]) for key, each in ours.items() if key.endswith(".shares")],
                [each["lam" if name == "mixup" else "lam_adjusted"] for each in drawn])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/tests/twiddle_augment")
    parser.add_argument("--seeds", type=int, default=4000, help="of each distribution")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}\n")
    table = Table()
    colours(table, arguments.program)
    rand_augment(table, arguments.program)
    random_erasing(table, arguments.program)
    mixed(table, arguments.program)
    distributions(table, arguments.program, arguments.seeds)
    if table.missed:
        sys.exit(f"bounds missed by: {'; '.join(table.missed)}")


if __name__ == "__main__":
    main()
