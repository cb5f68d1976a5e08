"""The networks that `convert` is timed on, with random weights: (module, batch size, size of the images)."""

import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(inputs, outputs, kernel, stride=1, groups=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


def classifier(*widths):
    layers = [nn.Flatten()]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return layers[:-1]


def alexnet(pixels=36, classes=1000):
    """Pixels left for the linear layers: 36 of images of 224x224, 1 of 64x64."""
    layers = []
    for inputs, outputs, kernel, stride, padding, pool in (
        (3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False), (384, 256, 3, 1, 1, False), (256, 256, 3, 1, 1, True)
    ):
        layers += [nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(3, 2)] if pool else []
    return nn.Sequential(*layers, *classifier(256 * pixels, 4096, 4096, classes))


def vgg19(pixels=49, classes=1000):
    """Pixels left for the linear layers: 49 of images of 224x224, 1 of 32x32."""
    layers, inputs = [], 3
    for outputs, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, *classifier(512 * pixels, 4096, 4096, classes))


class LargeKernelBlock(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(width), conv_norm(width, width, 1), nn.ReLU(inplace=True))
        self.large, self.small = (conv_norm(width, width, size, groups=width) for size in (kernel, 5))
        self.after = conv_norm(width, width, 1)

    def forward(self, x):
        y = self.before(x)
        return x + self.after(F.relu(self.large(y) + self.small(y)))


class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x)


def replknet(widths, depths, kernels, classes=1000):
    """RepLKNet (Ding et al. 2022)."""
    relu, first = nn.ReLU(inplace=True), widths[0]
    layers = [conv_norm(3, first, 3, 2), relu, conv_norm(first, first, 3, 1, first), relu]
    layers += [conv_norm(first, first, 1), relu, conv_norm(first, first, 3, 2, first), relu]
    for stage, (width, depth, kernel) in enumerate(zip(widths, depths, kernels)):
        if stage > 0:
            layers += [conv_norm(widths[stage - 1], width, 1), relu, conv_norm(width, width, 3, 2, width), relu]
        for _ in range(depth):
            wide = Residual(nn.BatchNorm2d(width), conv_norm(width, 4 * width, 1), nn.GELU(), conv_norm(4 * width, width, 1))
            layers += [LargeKernelBlock(width, kernel), wide]
    return nn.Sequential(*layers, nn.BatchNorm2d(widths[-1]), nn.AdaptiveAvgPool2d(1), *classifier(widths[-1], classes))


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def replknet31b(classes=1000):
    return replknet((128, 256, 512, 1024), (2, 2, 18, 2), (31, 29, 27, 13), classes)


def convnext_t(classes=1000):
    widths, layers = (96, 192, 384, 768), [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)]
    for stage, (width, depth) in enumerate(zip(widths, (3, 3, 9, 3))):
        if stage > 0:
            layers += [ChannelNorm(widths[stage - 1]), nn.Conv2d(widths[stage - 1], width, 2, 2)]
        for _ in range(depth):
            depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
            layers.append(Residual(depthwise, ChannelNorm(width), nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1)))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), *classifier(768, classes))


class UNet(nn.Module):
    """Ronneberger et al. 2015, with padding, for images of one channel and two classes a pixel."""

    def __init__(self, width=64, depth=4):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        twice = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())  # noqa: E731
        self.down = nn.ModuleList(twice(a, b) for a, b in zip([1] + widths[:-1], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, 2) for a in widths[:-1])
        self.joined = nn.ModuleList(twice(2 * a, a) for a in widths[:-1])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        levels = []
        for level in self.down:
            x = level(F.max_pool2d(x, 2) if levels else x)
            levels.append(x)
        for up, joined, skipped in zip(self.up[::-1], self.joined[::-1], levels[-2::-1]):
            x = joined(torch.cat([skipped, up(x)], 1))
        return self.last(x).mean((2, 3))


networks = {
    "alexnet": (alexnet, 128, (3, 224, 224)),
    "vgg19": (vgg19, 64, (3, 224, 224)),
    "replknet31b": (replknet31b, 64, (3, 224, 224)),
    "convnext_t": (convnext_t, 64, (3, 224, 224)),
    "unet": (UNet, 4, (1, 512, 512)),
    "replknet_small": (lambda: replknet((32, 64), (2, 2), (13, 13), 10), 32, (3, 32, 32)),
}
