"""How does a network that was trained at one rate hear at half of it? Each step stands for two.

A cell with a step size doubles it: the published protocol of S4 and S5. RotRNN and LRU have none; what follows from it
is that every eigenvalue is squared, and LRU's learned normaliser keeps its ratio to the stationary one:

    decay -> decay^2,   phase -> 2 phase,   normaliser -> normaliser sqrt((1 - decay^4) / (1 - decay^2))

Source: S4, arXiv:2111.00396, and S5, arXiv:2208.04933, the test at 8 kHz; for RotRNN and LRU derived.
"""

import math

import torch
from torch import nn

from rotrnn_core.layers import LRU, S5, Cell, RotRNN
from rotrnn_core.layers.channels import ChannelCell


@torch.no_grad()
def halve_rate(network: nn.Module) -> bool:
    """Let each step of every cell stand for two.

    Returns:
        Whether that was done; False where a cell's steps stand for no time, and then nothing has changed.
    """
    cells = [module for module in network.modules() if isinstance(module, Cell)]
    if not all(isinstance(cell, RotRNN | LRU | S5 | ChannelCell) for cell in cells):
        return False
    twice = math.log(2)
    for cell in cells:
        match cell:
            case RotRNN():
                cell.gamma_log.add_(twice)
                if hasattr(cell, "theta"):
                    cell.theta.mul_(2)
                else:
                    cell.theta_log.add_(twice)
            case LRU():
                if cell.normaliser == "learned":
                    cell.gamma_log.add_(0.5 * torch.log1p(torch.exp(-2 * torch.exp(cell.nu_log))))
                cell.nu_log.add_(twice)
                cell.theta_log.add_(twice)
            case S5() | ChannelCell():
                cell.log_step.add_(twice)
    return True
