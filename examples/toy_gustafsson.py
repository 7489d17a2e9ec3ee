"""How many samples are enough? `python toy_gustafsson.py [FOLDER] [--quick]`.

The two toys of Gustafsson et al. 2020 (§4.1), seen in a part of their input only: a sinusoid with
noise that depends on x (x in [-3, 3] of [-7, 7]), and two classes inside and outside a circle (the
right half of a square). Ensembles and MC dropout of M samples are compared by `uqeval` with a
reference: Hamiltonian Monte Carlo over the weights (16 chains on the full data, each begun at a
network of its own); in the paper, one NUTS chain, run for longer.

Expect: an ensemble's KL to the reference falls as M grows and levels off; MC dropout starts no
lower and gains little from more samples. "HMC, half" is one half of the chains against the other:
differences near or below it say nothing. The chains are short and begin where ensemble members
end, which flatters ensembles; and, unlike the paper, σ is kept below 0.37 (see `gaussian`).
Needs `pip install '.[examples]'` in the repository; takes about a minute.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch.nn.functional import cross_entropy, dropout, softplus

import uqeval

HIDDEN, MEMBERS, CHAINS, DRAWS = 10, 64, 16, 8
COLOURS = {"Ensemble": "#0072B2", "MC dropout": "#D55E00", "HMC, half": "#595959"}  # Okabe, Ito


class Sinusoid:
    """y = sin x + noise; two networks, μ and log σ²."""

    name, title, networks, shape, drop = "sinusoid", "Sinusoid (regression)", 2, (1, 281), 0.2
    sizes = ((1, HIDDEN), (1, HIDDEN), (HIDDEN, HIDDEN), (1, HIDDEN), (HIDDEN, 1), (1, 1))
    grid = torch.linspace(-7, 7, 281)[:, None]

    def __init__(self) -> None:
        self.x = torch.rand(1000, 1) * 6 - 3
        noise = 0.15 * torch.sigmoid(self.x[:, 0])
        self.y = torch.sin(self.x[:, 0]) + noise * torch.randn(1000)

    @staticmethod
    def gaussian(out):
        """μ and log σ², kept below -2: else one network in 60 says σ = 10⁴ far from the data."""
        return out[:, 0, :, 0], -2 - softplus(-2 - out[:, 1, :, 0])

    @staticmethod
    def nll(out, y):
        mean, log_variance = Sinusoid.gaussian(out)
        return ((y - mean) ** 2 * torch.exp(-log_variance) + log_variance) / 2

    @staticmethod
    def arrays(out):
        """[1, sample, 1, x] of what uqeval reads."""
        mean, log_variance = Sinusoid.gaussian(out)
        parts = {"mean": mean, "std": torch.exp(log_variance / 2)}
        return {name: part.numpy()[None, :, None] for name, part in parts.items()}


class Circle:
    """Two classes, inside and outside a circle; one network, two logits."""

    name, title, networks, shape, drop = "circle", "Circle (2 classes)", 1, (61, 61), 0.1
    sizes = ((2, HIDDEN), (1, HIDDEN), (HIDDEN, HIDDEN), (1, HIDDEN), (HIDDEN, 2), (1, 2))
    grid = torch.cartesian_prod(torch.linspace(-6, 6, 61), torch.linspace(-6, 6, 61)).flip(1)

    def __init__(self) -> None:
        self.x = torch.rand(1040, 2) * torch.tensor([3.0, 6.0]) - torch.tensor([0.0, 3.0])
        self.y = (self.x.norm(dim=1) > 2.4).long()

    @staticmethod
    def nll(out, y):
        out = out[:, 0]
        y = y.expand(out.shape[:2])
        return cross_entropy(out.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)

    @staticmethod
    def arrays(out):
        """[1, sample, class, y, x] of what uqeval reads."""
        probs = out[:, 0].softmax(-1).transpose(1, 2)
        return {"probs": probs.reshape(1, -1, 2, *Circle.shape).numpy()}


def start(toy, members):
    """Weights [member, network, all], drawn as PyTorch does for its linear layers."""
    fan_in = [toy.sizes[k - k % 2][0] for k in range(len(toy.sizes))]
    parts = [
        (2 * torch.rand(members, toy.networks, a * b) - 1) / fan**0.5
        for (a, b), fan in zip(toy.sizes, fan_in, strict=True)
    ]
    return torch.cat(parts, -1)


def forward(toy, weights, x, drop=0.0, same_mask=False):
    """Outputs [member, network, point, number] of points [point, …] or [member, 1, point, …]."""
    parts = weights.split([a * b for a, b in toy.sizes], dim=-1)
    w1, b1, w2, b2, w3, b3 = (
        p.unflatten(-1, size) for p, size in zip(parts, toy.sizes, strict=True)
    )
    hidden = torch.relu(x @ w1 + b1)
    if drop:
        hidden = hidden * dropout(torch.ones_like(hidden[:, :, :1] if same_mask else hidden), drop)
    return torch.relu(hidden @ w2 + b2) @ w3 + b3


def train(toy, members, steps, drop=0.0):
    """MAP weights under a N(0, 1) prior, by Adam; and the curvature that Adam saw on its way."""
    weights = start(toy, members).requires_grad_()
    adam = torch.optim.Adam([weights], lr=4e-3, betas=(0.9, 0.99))
    count, batch = len(toy.x), 32
    for _ in range(steps):
        chosen = torch.randint(count, (members, batch))
        out = forward(toy, weights, toy.x[chosen][:, None], drop)
        prior = (weights**2).sum() / (2 * count)
        loss = toy.nll(out, toy.y[chosen]).mean(1).sum() + prior
        (weights.grad,) = torch.autograd.grad(loss, weights)
        adam.step()
    return weights.detach(), 1 + count * batch * adam.state[weights]["exp_avg_sq"]


def hmc(toy, weights, mass, draws, leaps=20):
    """Draws by Hamiltonian Monte Carlo [chain, draw, network, all]; half of them warm up first."""

    def energy(at):
        at = at.detach().requires_grad_()
        value = toy.nll(forward(toy, at, toy.x), toy.y).sum(1) + (at**2).sum((1, 2)) / 2
        return value.detach(), torch.autograd.grad(value.sum(), at)[0]

    step, kept = torch.full((len(weights), 1, 1), 0.02), []
    now, slope = energy(weights)
    for draw in range(draws):
        momentum = torch.randn_like(weights) * mass.sqrt()
        before = now + (momentum**2 / mass).sum((1, 2)) / 2
        at, force, value = weights, slope, now
        for _ in range(leaps):
            momentum = momentum - step / 2 * force
            at = at + step * momentum / mass
            value, force = energy(at)
            momentum = momentum - step / 2 * force
        after = value + (momentum**2 / mass).sum((1, 2)) / 2
        chance = (before - after).exp().nan_to_num(0.0).clamp(max=1)
        yes = torch.rand_like(chance) < chance
        now = torch.where(yes, value, now)
        weights = torch.where(yes[:, None, None], at, weights)
        slope = torch.where(yes[:, None, None], force, slope)
        if draw < draws // 2:
            step = step * torch.exp(0.2 * (chance - 0.7))[:, None, None]  # aim: 70 % accepted
        else:
            kept.append(weights)
    return torch.stack(kept, 1)


def save(toy, weights, path, **how):
    """Predictions of these weights on the grid, as a store."""
    with torch.no_grad():
        np.savez(path, **toy.arrays(forward(toy, weights, toy.grid, **how)))
    return path


def compare(toy, folder, quick):
    """{method: {M: KL of each draw}}, and the stores of M = 16 to be drawn."""
    factor = 50 if quick else 1
    members, _ = train(toy, MEMBERS, 1500 // factor)
    models, _ = train(toy, DRAWS, 3000 // factor, toy.drop)
    chains = hmc(toy, *train(toy, CHAINS, 1500 // factor), max(100 // factor, 4))
    first, second = chains[: CHAINS // 2].flatten(0, 1), chains[CHAINS // 2 :].flatten(0, 1)
    reference = save(toy, torch.cat([first, second]), folder / f"{toy.name}_hmc.npz")

    def kl(path, other=reference):
        report = uqeval.evaluate(path, None, ["divergence"], reference=other)
        return report.results["divergence"]["kl"]

    found, shown = {"Ensemble": {}, "MC dropout": {}}, {"HMC": reference}
    for m in (1, 2, 4, 8, 16, 32):
        subsets = [torch.randperm(MEMBERS)[:m] for _ in range(DRAWS)]
        paths = [folder / f"{toy.name}_{name}_{m}.npz" for name in ("ensemble", "dropout")]
        found["Ensemble"][m] = [kl(save(toy, members[own], paths[0])) for own in subsets]
        found["MC dropout"][m] = [
            kl(save(toy, model.expand(m, -1, -1), paths[1], drop=toy.drop, same_mask=True))
            for model in models
        ]
        if m == 16:
            shown |= {"Ensemble": paths[0], "MC dropout": paths[1]}
    halves = [
        save(toy, own, folder / f"{toy.name}_half_{k}.npz") for k, own in enumerate((first, second))
    ]
    return found, shown, kl(*halves)


def draw(axes, toy, found, shown, floor):
    """A row of the figure: KL over M, and the predictive distributions."""
    for name, by_m in found.items():
        means, stds = (np.array([f(v) for v in by_m.values()]) for f in (np.mean, np.std))
        low = np.maximum(means - stds, means / 10)  # the axis is logarithmic
        axes[0].plot(list(by_m), means, "o-", color=COLOURS[name], label=name)
        axes[0].fill_between(list(by_m), low, means + stds, color=COLOURS[name], alpha=0.2, lw=0)
    axes[0].axhline(floor, ls="--", color=COLOURS["HMC, half"], label="HMC, half")
    axes[0].set(xscale="log", yscale="log", xlabel="samples M", ylabel="KL to HMC (nats)")
    axes[0].set(title=toy.title, xticks=list(by_m), xticklabels=list(by_m))
    axes[0].minorticks_off()
    axes[0].legend()
    for ax, (name, path) in zip(axes[1:], shown.items(), strict=True):
        stored = np.load(path)
        ax.set_title(name if name == "HMC" else f"{name}, M = 16")
        if "mean" in stored:
            mean, std, x = stored["mean"][0, :, 0], stored["std"][0, :, 0], toy.grid[:, 0].numpy()
            mid = mean.mean(0)
            spread = 2 * np.sqrt(mean.var(0) + (std**2).mean(0))
            ax.fill_between(
                x, mid - spread, mid + spread, color="#56B4E9", alpha=0.4, lw=0, label="mean ± 2σ"
            )
            ax.plot(x, mid, color="#0072B2", label="mean")
            ax.plot(x, np.sin(x), "k:", label="sin x")
            ax.axvspan(-3, 3, color="0.92", zorder=0, label="seen")
            ax.set(xlabel="x (no unit)", ylabel="y (no unit)", xlim=(-7, 7), ylim=(-6, 6))
        else:
            shade = ax.imshow(
                stored["probs"][0, :, 1].mean(0), cmap="cividis", vmin=0, vmax=1,
                origin="lower", extent=(-6, 6, -6, 6),
            )  # fmt: skip
            ax.plot([0, 3, 3, 0, 0], [-3, -3, 3, 3, -3], "w--", lw=1)
            ax.set(xlabel="x₁ (no unit)", ylabel="x₂ (no unit)")
            ax.figure.colorbar(shade, ax=ax, label="p(outside the circle)", shrink=0.8)
    if "mean" in stored:
        axes[1].legend(frameon=False, ncols=2, fontsize="small")


def main(folder: Path, quick: bool) -> None:
    """Trains, compares, prints, and writes stores and `toy_gustafsson.png` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these networks are too small for more
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(16, 7.5), layout="constrained")
    for row, toy in zip(axes, (Sinusoid(), Circle()), strict=True):
        found, shown, floor = compare(toy, folder, quick)
        draw(row, toy, found, shown, floor)
        print(f"{toy.title}: KL to HMC in nats, mean ± std; HMC, half: {floor:.3f}")
        print(f"{'M':>4} " + "".join(f"{name:>18}" for name in found))
        for m in found["Ensemble"]:
            cells = (f"{np.mean(by[m]):.3f} ± {np.std(by[m]):.3f}" for by in found.values())
            print(f"{m:>4} " + "".join(f"{cell:>18}" for cell in cells))
    figure.savefig(folder / "toy_gustafsson.png", dpi=110)
    print(folder / "toy_gustafsson.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("toy_gustafsson"))
    parser.add_argument("--quick", action="store_true", help="hardly train: to see that it runs")
    given = parser.parse_args()
    main(given.folder, given.quick)
