"""What a user should know once in a process, and not again at every call."""

import warnings
from typing import Set

import torch

reported: Set[str] = set()


def warn_once(message: str, stacklevel: int = 3) -> None:
    """As a warning at the line that has called the caller of this function, or at another by ``stacklevel``."""
    if torch.compiler.is_compiling() or message in reported:
        return
    reported.add(message)
    warnings.warn(f"twiddle_torch: {message}", stacklevel=stacklevel)


def warn_of_copy(operand: str) -> None:
    warn_once(f"{operand} is not contiguous (channels_last is not, either): it is copied in each call", stacklevel=4)
