"""The toys of Gustafsson et al. 2020, §4.1: `python gustafsson_toys.py [FOLDER] [--quick]`.

Two problems, seen in a part of their input only: a sinusoid with noise that depends on x (x in
[-3, 3] of [-7, 7]), and two classes inside and outside a circle (the right half of a square).
Ensembles, MC dropout, SGLD and SGHMC of M samples are compared by `uqeval` with a reference:
Hamiltonian Monte Carlo over the weights (16 chains on the full data, each begun at a network of its
own); in the paper, one NUTS chain, run for longer.

Writes figures 2 to 5, 10 to 13 and (together) 14 to 21 of the paper.

Expect: an ensemble's KL to the reference falls as M grows and levels off; MC dropout starts no
lower and gains little from more samples. "HMC, half" is one half of the chains against the other:
differences near or below it say nothing. The chains are short and begin where ensemble members
end, which flatters ensembles; SGLD and SGHMC run for 20,000 steps, not 1.2 million; and, unlike the
paper, σ is kept below 0.37 (see `gaussian`).
Needs `pip install '.[examples]'` in the repository; takes four minutes on an idle machine.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch.nn.functional import cross_entropy, dropout, softplus

import uqeval

HIDDEN, MEMBERS, CHAINS, DRAWS, TRAJECTORIES = 10, 64, 16, 8, 6
MS = (1, 2, 4, 8, 16, 32)
COLOURS = {  # Okabe, Ito
    "Ensemble": "#0072B2", "MC dropout": "#D55E00", "SGLD": "#009E73", "SGHMC": "#CC79A7",
    "HMC, half": "#595959",
}  # fmt: skip
OPTIMISERS = {
    "Adam": lambda weights: torch.optim.Adam(weights, lr=4e-3, betas=(0.9, 0.99)),
    "SGD": lambda weights: torch.optim.SGD(weights, lr=0.05),
    "SGD with momentum": lambda weights: torch.optim.SGD(weights, lr=0.02, momentum=0.9),
}


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
        """μ and log σ² < -2: else one network in 60 predicts σ = 10⁴ far from the data."""
        return out[:, 0, :, 0], -2 - softplus(-2 - out[:, 1, :, 0])

    @staticmethod
    def nll(out, y):
        mean, log_variance = Sinusoid.gaussian(out)
        return ((y - mean) ** 2 * torch.exp(-log_variance) + log_variance) / 2

    @staticmethod
    def arrays(out):
        """Return predictions [1, sample, 1, x] in the layout that uqeval reads."""
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
        """Return predictions [1, sample, class, y, x] in the layout that uqeval reads."""
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


def gradient(toy, weights, drop=0.0, batch=32):
    """Gradient of -log p(y, weights) / N on a random batch, for each member."""
    chosen = torch.randint(len(toy.x), (len(weights), batch))
    at = weights.detach().requires_grad_()
    out = forward(toy, at, toy.x[chosen][:, None], drop)
    prior = (at**2).sum() / (2 * len(toy.x))
    loss = toy.nll(out, toy.y[chosen]).mean(1).sum() + prior
    return torch.autograd.grad(loss, at)[0]


def train(toy, members, steps, drop=0.0, optimiser="Adam"):
    """MAP weights under a N(0, 1) prior."""
    weights = start(toy, members)
    chosen = OPTIMISERS[optimiser]([weights])
    for _ in range(steps):
        weights.grad = gradient(toy, weights, drop)
        if optimiser != "Adam":
            weights.grad = weights.grad.clamp(-5, 5)
        chosen.step()
    return weights


def chains_of(toy, steps):
    """Return MAP weights at which chains begin, and the curvature from Adam's steps."""
    weights = start(toy, CHAINS)
    adam, batch = OPTIMISERS["Adam"]([weights]), 32
    for _ in range(steps):
        weights.grad = gradient(toy, weights, batch=batch)
        adam.step()
    return weights, 1 + len(toy.x) * batch * adam.state[weights]["exp_avg_sq"]


def langevin(toy, steps, friction=None):
    """SGLD, or SGHMC with `friction`: 32 weights [trajectory, sample, …] of the last quarter.

    The step falls as α₀·(1 - t/T)^0.9, as in appendix B.2 of the paper; α₀ is that of the mean
    gradient, so that the noise has variance 2·α / N.
    """
    weights, kept = train(toy, TRAJECTORIES, steps // 10), []
    velocity, count = torch.zeros_like(weights), len(toy.x)
    at = {int(t) for t in np.linspace(0.75 * steps, steps - 1, MS[-1])}
    for t in range(steps):
        rate = (0.01 if friction is None else 0.001) * (1 - t / steps) ** 0.9
        push = -rate * gradient(toy, weights).clamp(-50, 50)
        if friction is None:
            weights = weights + push + (2 * rate / count) ** 0.5 * torch.randn_like(weights)
        else:
            noise = (2 * friction * rate / count) ** 0.5 * torch.randn_like(weights)
            velocity = (1 - friction) * velocity + push + noise
            weights = weights + velocity
        if t in at:
            kept.append(weights)
    return torch.stack(kept, 1)


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


class Methods:
    """The methods on one toy, compared with HMC: KL of several draws for each M."""

    def __init__(self, toy, folder, factor):
        self.toy, self.folder, self.factor = toy, folder, factor
        self.ms, self.draws = (MS, DRAWS) if factor == 1 else ((1, 4), 2)
        chains = hmc(toy, *chains_of(toy, 1500 // factor), max(100 // factor, 4))
        first, second = chains[: CHAINS // 2].flatten(0, 1), chains[CHAINS // 2 :].flatten(0, 1)
        self.reference = self.store("hmc", torch.cat([first, second]))
        halves = [self.store(f"half_{k}", own) for k, own in enumerate((first, second))]
        self.floor, self.shown = self.kl(halves[0], halves[1]), {"HMC": self.reference}

    def store(self, name, weights, **how):
        """Return the path of a store of the predictions of these weights."""
        return save(self.toy, weights, self.folder / f"{self.toy.name}_{name}.npz", **how)

    def kl(self, path, other=None):
        """Return KL(predictions ‖ reference), by uqeval."""
        reference = self.reference if other is None else other
        report = uqeval.evaluate(path, None, ["divergence"], reference=reference)
        return report.results["divergence"]["kl"]

    def ensembles(self, optimiser="Adam"):
        """{M: KL of several subsets}."""
        members = train(self.toy, MEMBERS, 1500 // self.factor, optimiser=optimiser)
        if optimiser == "Adam":
            self.shown["Ensemble"] = self.store("ensemble_shown", members)
            self.shown["One network"] = self.store("one_shown", members[:1])
        subsets = {m: [torch.randperm(MEMBERS)[:m] for _ in range(self.draws)] for m in self.ms}
        return {
            m: [self.kl(self.store("draw", members[subset])) for subset in own]
            for m, own in subsets.items()
        }

    def dropout(self, optimiser="Adam", drop=None):
        """{M: KL of several networks}."""
        drop = self.toy.drop if drop is None else drop
        models = train(self.toy, self.draws, 3000 // self.factor, drop, optimiser)
        how = {"drop": drop, "same_mask": True}
        if optimiser == "Adam" and drop == self.toy.drop:
            shown = models[0].expand(64, -1, -1)
            self.shown["MC dropout"] = self.store("dropout_shown", shown, **how)
        return {
            m: [self.kl(self.store("draw", one.expand(m, -1, -1), **how)) for one in models]
            for m in self.ms
        }

    def chains(self, steps, shown=True):
        """{method: {M: KL of each trajectory}} of SGLD and SGHMC."""
        found = {}
        for name, friction in (("SGLD", None), ("SGHMC", 0.1)):
            samples = langevin(self.toy, max(steps // self.factor, MS[-1] * 8), friction)
            if shown:
                self.shown[name] = self.store(f"{name.lower()}_shown", samples[0])
            picks = {m: np.linspace(0, MS[-1] - 1, m).astype(int) for m in self.ms}
            found[name] = {
                m: [self.kl(self.store("draw", own[pick])) for own in samples[: self.draws]]
                for m, pick in picks.items()
            }
        return found


def draw_kl(figure, panels, title):
    """Plot KL over M: `panels` [(toy, {method: {M: values}}, floor)]."""
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    cycle = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8a6d00"]
    for ax, (toy, found, floor) in zip(axes, panels, strict=True):
        for k, (name, by_m) in enumerate(found.items()):
            colour = COLOURS.get(name, cycle[k])
            means, stds = (np.array([f(v) for v in by_m.values()]) for f in (np.mean, np.std))
            low = np.maximum(means - stds, means / 10)  # the axis is logarithmic
            ax.plot(list(by_m), means, "o-", color=colour, label=name)
            ax.fill_between(list(by_m), low, means + stds, color=colour, alpha=0.2, lw=0)
        ax.axhline(floor, ls="--", color=COLOURS["HMC, half"], label="HMC, half")
        ax.set(xscale="log", yscale="log", xlabel="samples M", ylabel="KL to HMC (nats)")
        ax.set(title=toy.title, xticks=list(by_m), xticklabels=list(by_m))
        ax.minorticks_off()
    axes[0].legend(fontsize="small")
    figure.suptitle(title)


def draw_density(ax, toy, path, name):
    """Draw one predictive distribution."""
    stored = np.load(path)
    ax.set_title(name)
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
        return
    shade = ax.imshow(
        stored["probs"][0, :, 1].mean(0), cmap="cividis", vmin=0, vmax=1, origin="lower",
        extent=(-6, 6, -6, 6),
    )  # fmt: skip
    ax.plot([0, 3, 3, 0, 0], [-3, -3, 3, 3, -3], "w--", lw=1)
    ax.set(xlabel="x₁ (no unit)", ylabel="x₂ (no unit)")
    ax.figure.colorbar(shade, ax=ax, label="p(outside)", shrink=0.8)


def draw_data(ax, toy):
    """Draw the training data: Figure 2a and 3b."""
    ax.set_title(f"{toy.title}: data")
    if toy.networks == 2:
        ax.plot(toy.x[:, 0], toy.y, ".", ms=2, color="#0072B2", label="training point")
        x = toy.grid[:, 0].numpy()
        ax.plot(x, np.sin(x), "k:", label="sin x")
        ax.set(xlabel="x (no unit)", ylabel="y (no unit)", xlim=(-7, 7), ylim=(-6, 6))
        return
    for k, (colour, name) in enumerate((("#0072B2", "inside"), ("#D55E00", "outside"))):
        own = toy.x[toy.y == k]
        ax.plot(own[:, 0], own[:, 1], ".", ms=2, color=colour, label=name)
    ax.set(xlabel="x₁ (no unit)", ylabel="x₂ (no unit)", xlim=(-6, 6), ylim=(-6, 6))
    ax.set_aspect("equal")


def draw_densities(figure, methods, names, data=False):
    """Draw the predictive distributions of some methods, one row per toy."""
    axes = figure.subplots(len(methods), len(names) + data, squeeze=False)
    for row, own in zip(axes, methods, strict=True):
        if data:
            draw_data(row[0], own.toy)
        for ax, name in zip(row[int(data) :], names, strict=True):
            draw_density(ax, own.toy, own.shown[name], name)
    if data:
        axes[0, 0].legend(fontsize="small", loc="upper left")
        axes[0, 1].legend(fontsize="small", ncols=2)


def main(folder: Path, quick: bool) -> None:
    """Train, compare, print, and write stores and figures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these networks are too small for more
    mpl.use("Agg")
    from matplotlib.figure import Figure

    factor, steps = (150, 200) if quick else (1, 20_000)
    methods = [Methods(toy, folder, factor) for toy in (Sinusoid(), Circle())]
    chains = [own.chains(steps) for own in methods]
    figures = {}
    for number, optimiser in zip((5, 10, 11), OPTIMISERS, strict=True):
        figures[number] = [
            {"Ensemble": own.ensembles(optimiser), "MC dropout": own.dropout(optimiser)} | more
            for own, more in zip(methods, chains, strict=True)
        ]
        if quick:
            break
    if not quick:
        figures[12] = [figures[11][0] | methods[0].chains(steps // 4, shown=False)]
        figures[13] = [
            {f"drop probability {p}": own.dropout(drop=p) for p in (0.1, 0.2, 0.4)}
            for own in methods
        ]
    titles = {5: "Adam", 10: "SGD", 11: "SGD with momentum",
              12: "SGD with momentum; SGLD and SGHMC: 5,000 steps",
              13: "MC dropout"}  # fmt: skip
    written = {}
    for number, found in figures.items():
        written[number] = figure = Figure(
            figsize=(max(5.2 * len(found), 6.4), 3.8), layout="constrained"
        )
        panels = [(own.toy, f, own.floor) for own, f in zip(methods, found, strict=False)]
        draw_kl(figure, panels, titles[number])
    for own, found in zip(methods, figures[5], strict=True):
        print(f"{own.toy.title}: KL to HMC in nats, mean ± std; HMC, half: {own.floor:.3f}")
        print(f"{'M':>4} " + "".join(f"{name:>18}" for name in found))
        for m in found["Ensemble"]:
            cells = (f"{np.mean(by[m]):.3f} ± {np.std(by[m]):.3f}" for by in found.values())
            print(f"{m:>4} " + "".join(f"{cell:>18}" for cell in cells))
    written["2_3"] = Figure(figsize=(9.5, 5.2), layout="constrained")
    draw_densities(written["2_3"], methods, ["One network", "HMC"], data=True)
    written["4_14_21"] = Figure(figsize=(11.5, 5.2), layout="constrained")
    names = ["Ensemble", "MC dropout", "SGLD", "SGHMC"]
    draw_densities(written["4_14_21"], methods, names)
    for number, figure in written.items():
        figure.savefig(folder / f"figure_{number}.png", dpi=90)
        print(folder / f"figure_{number}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("gustafsson_toys"))
    parser.add_argument("--quick", action="store_true", help="hardly train: to see that it runs")
    given = parser.parse_args()
    main(given.folder, given.quick)
