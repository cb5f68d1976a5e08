"""Convolutions by Twiddle's engines (Fourier transforms, Winograd, tensor core products in full precision) for PyTorch.

>>> import twiddle_torch
>>> twiddle_torch.convert(model)          # large kernels of any model, in place
>>> y = twiddle_torch.conv2d(x, weight)   # or one convolution
"""

from twiddle_torch._library import __version__, choices, devices
from twiddle_torch.conv import Conv2d, conv2d
from twiddle_torch.convert import convert

__all__ = ["Conv2d", "conv2d", "convert", "choices", "devices", "__version__"]
