"""n-MeRCI on the cubic toy of Moukari et al. 2019 (§V): `python toy_nmerci.py [FOLDER] [--quick]`.

Twenty noisy points of y = x³, three of them biased. Small networks learn them; four ways of getting
twenty predictions (other initial weights, other bootstrap samples of the data, other dropout masks,
other epochs of one training) give a mean and a standard deviation σ at each point, which `uqeval`
judges: is σ large where the error is? n-MeRCI is 0 where σ is the error but for a factor, 1 where σ
says nothing (it is constant), above 1 where it misleads.

Expect: n-MeRCI falls as α leaves out outliers, and tells the methods apart though their RMSE is
alike. All of them have an AUCE near its worst, 0.5: an ensemble's spread says where it may be wrong
but is far too small for an interval. Twenty points are few: another seed may change the order.
Needs `pip install 'uqeval[examples]'`; takes half a minute.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch.nn.functional import dropout

import uqeval

RUNS, HIDDEN, DROPOUT, SCALE, ALPHA = 20, 100, 0.2, 20.0, 85
COLOURS = {  # Okabe and Ito's, told apart by the colour-blind
    "Multi Inits": "#0072B2", "Bagging": "#009E73", "MC Dropout": "#D55E00", "Multi Epochs": "#CC79A7",
}  # fmt: skip


def cubic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training points x, their y, and which of them are biased: three in [-2.3, -1.3]."""
    x = np.concatenate([rng.uniform(-2.3, -1.3, 3), rng.uniform(-4, -2.3, 5), rng.uniform(-1.3, 4, 12)])
    biased = (x >= -2.3) & (x <= -1.3)
    return x, x**3 + rng.normal(0, 3, len(x)) + 40 * biased, biased


class Nets(torch.nn.Module):
    """`members` networks of one hidden layer, side by side: x [point] to y [member, point]."""

    def __init__(self, members: int) -> None:
        super().__init__()
        def uniform(scale, *shape):
            return torch.nn.Parameter(scale * (2 * torch.rand(members, *shape) - 1))
        self.w1, self.b1 = uniform(1, 1, HIDDEN), uniform(1, 1, HIDDEN)
        self.w2, self.b2 = uniform(HIDDEN**-0.5, HIDDEN, 1), uniform(HIDDEN**-0.5, 1, 1)

    def forward(self, x, masks=1.0):
        hidden = torch.relu(x[None, :, None] * self.w1 + self.b1) * masks
        return SCALE * (hidden @ self.w2 + self.b2)[..., 0]


def train(nets, x, y, weights, epochs, p=DROPOUT, every=0):
    """Adam on the weighted squared error; returns predictions on GRID at the last epochs."""
    adam = torch.optim.Adam(nets.parameters(), lr=0.01)
    for epoch in range(epochs):
        out = nets(x, dropout(torch.ones(len(weights), len(x), HIDDEN), p))
        loss = (weights * (out - y) ** 2).mean(dim=1).sum() / SCALE**2
        adam.zero_grad(); loss.backward(); adam.step()
        if every and epoch >= epochs - every: yield {k: v.detach().clone() for k, v in nets.state_dict().items()}
