"""n-MeRCI on the cubic toy of Moukari et al. 2019 (§V): `python moukari_toy.py [FOLDER] [--quick]`.

Twenty noisy points of y = x³, three of them biased. Small networks learn them; four ways of getting
twenty predictions (other initial weights, other bootstrap samples of the data, other dropout masks,
other epochs of one training) give a mean and a standard deviation σ at each point, which `uqeval`
judges: is σ large where the error is? n-MeRCI is 0 where σ is the error but for a factor, 1 where
σ is constant, above 1 where it misleads.

Expect: the RMSE of all four is alike; Bagging has by far the best n-MeRCI (and AUCE, and AUSE), as
in the paper, at α = 85 %, the share of points that are not biased. MC dropout is the worst here, as
there; with some other seeds Multi Epochs is: twenty points are few, and the curves over α rough.
Needs `pip install '.[examples]'` in the repository; takes a quarter of a minute.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch.nn.functional import dropout

import uqeval

RUNS, HIDDEN, DROPOUT, SCALE, ALPHA = 20, 100, 0.2, 20.0, 85
GRID = torch.linspace(-6, 6, 241)
LOOKS = {  # colours that the colour-blind can tell apart (Okabe and Ito), and line styles
    "Multi Inits": ("#0072B2", "-"),
    "Bagging": ("#009E73", "--"),
    "MC Dropout": ("#D55E00", "-."),
    "Multi Epochs": ("#CC79A7", ":"),
}


def cubic(rng):
    """Training points x and y; the first three, in [-2.3, -1.3], are biased."""
    parts = ((-2.3, -1.3, 3), (-4, -2.3, 5), (-1.3, 4, 12))
    x = np.concatenate([rng.uniform(*part) for part in parts])
    y = x**3 + rng.normal(0, 3, len(x)) + 40 * (np.arange(len(x)) < 3)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Nets(torch.nn.Module):
    """`members` networks of one hidden layer, side by side: x [point] to y [member, point]."""

    def __init__(self, members):
        super().__init__()
        shapes = ((1, HIDDEN), (1, HIDDEN), (HIDDEN, 1), (1, 1))
        drawn = (2 * torch.rand(members, *shape) - 1 for shape in shapes)
        scales = (1, 1, HIDDEN**-0.5, HIDDEN**-0.5)
        self.weights = torch.nn.ParameterList(a * b for a, b in zip(drawn, scales, strict=True))

    def forward(self, x, mask=1.0):
        w1, b1, w2, b2 = self.weights
        return SCALE * ((torch.relu(x[:, None] * w1 + b1) * mask) @ w2 + b2)[..., 0]


def train(nets, x, y, epochs, counts=None):
    """Adam on the squared error, each point `counts` times; yield after each epoch."""
    counts = torch.ones(1, len(x)) if counts is None else counts
    adam = torch.optim.Adam(nets.parameters(), lr=0.01)
    for _ in range(epochs):
        mask = dropout(torch.ones(len(nets.weights[0]), len(x), HIDDEN), DROPOUT)
        loss = (counts * (nets(x, mask) - y) ** 2).mean(dim=1).sum() / SCALE**2
        adam.zero_grad()
        loss.backward()
        adam.step()
        yield


def predictions(x, y, epochs):
    """{method: twenty predictions [run, point] at x, then GRID}."""
    at, found = torch.cat([x, GRID]), {}
    for name in ("Multi Inits", "Bagging"):
        nets, drawn = Nets(RUNS), torch.randint(len(x), (RUNS, len(x)))
        counts = torch.stack([own.bincount(minlength=len(x)) for own in drawn])
        list(train(nets, x, y, epochs, counts if name == "Bagging" else None))
        found[name] = nets(at)
    net, snapshots = Nets(1), []
    for _ in train(net, x, y, epochs):
        snapshots = [*snapshots[1 - RUNS :], net(at).detach()]
    found["MC Dropout"] = net(at, dropout(torch.ones(RUNS, 1, HIDDEN), DROPOUT))
    found["Multi Epochs"] = torch.cat(snapshots)
    return {name: own.detach().numpy() for name, own in found.items()}


def evaluate(runs, y, path):
    """Save mean, σ and target as one image of 1×20 pixels; return the scores of `uqeval`."""
    parts = {"mean": runs.mean(0), "std": runs.std(0), "target": y.numpy()}
    np.savez(path, **{name: part[None, None] for name, part in parts.items()})
    metrics = {"nmerci": {"alpha": ALPHA}, "regression": {}, "sparsification": {}}
    return uqeval.evaluate(path, None, metrics).results


def draw_toy(x, y, found, path):
    """Figure 1: the data, and predictions ± 2σ of each method."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained", sharex=True)
    for ax, (name, runs) in zip(axes.flat, found.items(), strict=True):
        (colour, _), on_grid = LOOKS[name], runs[:, len(x) :]
        mean, spread = on_grid.mean(0), 2 * on_grid.std(0)
        ax.fill_between(GRID, mean - spread, mean + spread, color=colour, alpha=0.3, label="± 2σ")
        ax.plot(GRID, mean, color=colour, label="mean")
        ax.plot(GRID, GRID**3, "k:", label="x³")
        ax.plot(x[3:], y[3:], "ko", ms=4, label="training point")
        ax.plot(x[:3], y[:3], "kx", ms=7, mew=2, label="biased one")
        ax.set(title=name, xlabel="x (no unit)", ylabel="y (no unit)", xlim=(-6, 6))
        ax.set_ylim(-150, 150)
    axes[0, 0].legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=110)


def draw_alpha(results, path):
    """Figure 2: n-MeRCI over α."""
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
    for name, (colour, style) in LOOKS.items():
        own = results[name]["nmerci"]
        label = f"{name}: {own['nmerci']:.2f} at {ALPHA} %"
        curve = own["curve"]
        ax.plot(curve["alpha"], curve["nmerci"], style, color=colour, lw=2, label=label)
    ax.axvline(ALPHA, color="0.4", lw=1)
    ax.set(xlabel="α (% of the points kept)", ylabel="n-MeRCI (no unit; lower is better)")
    ax.set(title="n-MeRCI over α", xlim=(65, 100), ylim=(-0.5, 9))
    ax.legend(loc="upper center")
    figure.savefig(path, dpi=110)


def main(folder, quick):
    """Train, evaluate, print, and write one store per method and two figures into `folder`."""
    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these networks are too small for more
    x, y = cubic(np.random.default_rng(0))
    found = predictions(x, y, 30 if quick else 2000)
    results = {}
    print(f"{'':14}{'RMSE':>8}{'n-MeRCI':>10}{'AUCE':>8}{'AUSE':>8}")
    for name, runs in found.items():
        own = evaluate(runs[:, : len(x)], y, folder / f"{name.lower().replace(' ', '_')}.npz")
        results[name] = own
        regression, ause = own["regression"], own["sparsification"]["ause"]
        print(f"{name:14}{regression['rmse']:8.2f}{own['nmerci']['nmerci']:10.2f}"
              f"{regression['auce']:8.2f}{ause:8.2f}")  # fmt: skip
    draw_toy(x, y, found, folder / "figure_1.png")
    draw_alpha(results, folder / "figure_2.png")
    print(folder / "figure_1.png", folder / "figure_2.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("moukari_toy"))
    parser.add_argument("--quick", action="store_true", help="hardly train: to see that it runs")
    given = parser.parse_args()
    main(given.folder, given.quick)
