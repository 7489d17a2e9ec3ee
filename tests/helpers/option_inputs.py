"""Tiny inputs on which every option of every evaluating command changes the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from small_stores import save
from small_videos import save_images, video

N, T, C, H, W = 6, 3, 3, 10, 9
FRAMES = [f"{sequence}_{i}" for sequence in "abcd" for i in range(3)]
FRAMES.append("d_3")
NAMES = [f"drive{i // 2}_{i:02}" for i in range(N)]


def write_all(root: Path) -> None:
    """Write the inputs into a folder: of classes (p), numbers (r) and videos (v)."""
    _write_classes(root)
    _write_numbers(root)
    _write_videos(root)
    _write_files(root)
    (root / "names.txt").write_text("\n".join(f"new{i}" for i in range(N)))
    (root / "names_v.txt").write_text("\n".join(f"z{name}" for name in FRAMES))
    (root / "fit.txt").write_text("\n".join(NAMES[:4]))
    (root / "numbers.txt").write_text("0\n1\n2\n3")
    (root / "half.txt").write_text("\n".join(NAMES[:2]))
    for table, names in (("items", NAMES), ("sets", [*NAMES, *"xyz"]), ("pairs", FRAMES)):
        rows = [
            f"{n},{'ab'[i % 2]},{'cd'[i % 3 > 0]},{n[:-2].replace('d', 'c') or n},{i}"
            for i, n in enumerate(names)
        ]
        text = "\n".join(["name,city,weather,drive,number", *rows])
        (root / f"{table}.csv").write_text(text + "\n")
    (root / "drives.txt").write_text("\n".join(NAMES))


def _write_classes(root: Path) -> None:
    """Write stores of class probabilities."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, T, C, H, W)) * 2
    z[0, :, 2] = -9  # the first item has two of the three classes
    p = np.exp(z) / np.exp(z).sum(2, keepdims=True)
    p[:, :, :, 0] = np.eye(C)[0][:, None]  # confidence 1, and probabilities of 0
    p[:, :, :, 1] = np.array([0.75, 0.25, 0])[:, None]  # on the edge of a bin, and tied
    p = p.astype("f4")
    ids = np.where(rng.random((N, H, W)) < 0.5, p.mean(1).argmax(1), rng.integers(0, C, (N, H, W)))
    ids[0] %= 2
    ids[:, 3, :5] = 255
    ids = ids.astype("u1")
    raters = np.stack([np.roll(ids, k, 2) for k in range(3)], axis=1)
    depth = rng.uniform(1, 9, (N, H, W)).astype("f4")
    mean = p.mean(1)
    np.savez(root / "p.npz", probs=p, labels=ids, names=NAMES)
    np.savez(root / "q.npz", probs=np.roll(p, 1, 2), labels=ids, names=NAMES)
    np.savez(root / "void.npz", probs=p, labels=np.minimum(ids, 2), names=NAMES)
    np.savez(root / "unnamed.npz", probs=p, labels=ids)
    np.savez(root / "raters.npz", probs=p, labels=raters, names=NAMES)
    np.savez(root / "sums.npz", probs=p * np.float32(1.01), labels=ids, names=NAMES)
    np.savez(root / "two.npz", probs=p[:, :, :2] / p[:, :, :2].sum(2, keepdims=True),
             labels=np.where(ids == 2, 1, ids), names=NAMES)  # fmt: skip
    np.savez(root / "ids.npz", predictions=mean.argmax(1).astype("u1"), labels=ids, names=NAMES,
             entropy=mean.max(1), confidence=mean.max(1))  # fmt: skip
    np.save(root / "z.npy", z[:, 0].astype("f4"))
    np.save(root / "nhwc.npy", np.moveaxis(p[:, 0], 1, 3))
    np.save(root / "z2.npy", z[:, 1].astype("f4"))
    np.save(root / "nhwc2.npy", np.moveaxis(p[:, 1], 1, 3))
    np.save(root / "depth.npy", depth)
    np.save(root / "mask.npy", (rng.random((N, H, W)) < 0.3).astype("u1"))
    np.save(root / "labels.npy", ids)
    np.save(root / "raters.npy", raters)
    np.save(root / "void_raters.npy", np.minimum(raters, 2))
    np.savez(root / "out.npz", probs=p[:3, :, ::-1], names=["x", "y", "z"])
    np.savez(root / "out_members.npz", probs=np.concatenate([p, p], 1)[:3, :, ::-1])
    for name, labels in (("gaps.zarr", ids), ("gaps_raters.zarr", raters)):
        save(root / name, {"logits": z.astype("f4"), "labels": labels}, {"names": NAMES})
        (root / name / "logits" / "c" / "5" / "0" / "0" / "0" / "0").unlink()
    for r in range(3):
        save_images(root / "folders" / f"r{r}", dict(zip(NAMES, raters[:, r], strict=True)))
        train_ids = np.where(raters[:, r] == 1, 11, 7).astype("u1")
        save_images(root / "train_ids" / f"r{r}", dict(zip(NAMES, train_ids, strict=True)))
    save_images(root / "ids", dict(zip(NAMES, np.where(ids == 1, 11, 7).astype("u1"), strict=True)))


def _write_numbers(root: Path) -> None:
    """Write stores of predicted numbers."""
    rng = np.random.default_rng(1)
    samples = rng.uniform(1, 9, (N, 4, H, W)).astype("f4")
    mean, std = samples.mean(1), samples.std(1)
    target = (mean + std * rng.normal(size=mean.shape)).clip(0.5).round(1).astype("f4")
    target[:, :2] = 0.5
    depth = rng.uniform(1, 9, (N, H, W)).astype("f4")
    np.savez(root / "r.npz", mean=mean, std=std, other=std[:, ::-1], target=target, names=NAMES)
    np.savez(root / "unnamed_r.npz", mean=mean, std=std, target=target)
    np.savez(root / "samples.npz", samples=samples, target=target, names=NAMES)
    samples[:, 0, 4] = np.nan
    np.savez(root / "nan.npz", samples=samples, target=target, names=NAMES)
    np.savez(root / "s.npz", mean=mean + 1, std=std, target=target, names=NAMES)
    np.savez(root / "hwn.npz", mean=np.moveaxis(mean, 0, 2), std=np.moveaxis(std, 0, 2))
    np.save(root / "target.npy", target)
    np.save(root / "depth_r.npy", depth)
    save(root / "gaps_r.zarr", {"mean": mean, "std": std, "target": target}, {"names": NAMES})
    (root / "gaps_r.zarr" / "mean" / "c" / "0" / "0" / "0").unlink()


def _write_videos(root: Path) -> None:
    """Write videos of four sequences, with a cut in the last."""
    rng = np.random.default_rng(2)
    scenes = [video(size=(32, 36), classes=C, seed=seed) for seed in range(5)]
    frames, ids, truth = (
        np.concatenate(
            [scene.stack(kind)[:n] for scene, n in zip(scenes, (3, 3, 3, 2, 2), strict=True)]
        )
        for kind in ("frames", "predictions", "labels")
    )
    flow = rng.uniform(-9, 9, (len(FRAMES) - 1, *ids.shape[1:], 2)).astype("f4")
    names = FRAMES
    probs = np.moveaxis(np.eye(C, dtype="f4")[np.minimum(ids, C - 1)], -1, 1)
    np.savez(root / "v.npz", frames=frames, predictions=ids, labels=truth, flow=flow, names=names)
    np.savez(root / "frames.npz", frames=frames, names=names)
    np.savez(root / "w.npz", predictions=ids, labels=truth)
    np.savez(root / "sums_v.npz", probs=probs * np.float32(1.01), names=names)
    np.savez(root / "small.npz", predictions=ids[:, ::2, ::2], names=names)
    np.savez(root / "other.npz", predictions=np.roll(ids, 1, 1), names=names)
    np.save(root / "z_v.npy", -probs)
    np.save(root / "hwn_v.npy", np.moveaxis(ids, 0, 2))
    np.save(root / "other_flow.npy", flow / 2)
    np.save(root / "forward.npy", rng.uniform(-2, 2, flow.shape).astype("f4"))
    np.save(root / "depth_v.npy", rng.uniform(1, 9, ids.shape).astype("f4"))
    np.savez(root / "void_v.npz", predictions=np.minimum(ids, 2),
             labels=np.minimum(truth, 2), names=names)  # fmt: skip
    np.savez(root / "labels_v.npz", labels=np.roll(truth, 1, 1), names=names)
    save_images(
        root / "ids_v", dict(zip(names, np.where(truth == 1, 11, 7).astype("u1"), strict=True))
    )
    save(root / "gaps_v.zarr", {"frames": frames, "predictions": ids}, {"names": names})
    (root / "gaps_v.zarr" / "predictions" / "c" / "1" / "0" / "0").unlink()


def _write_files(root: Path) -> None:
    """Write the files of stores and rules, and a report for each option that reads one."""
    (root / "uqeval.yaml").write_text(
        "stores:\n"
        "  classes: {predictions: p.npz}\n"
        "  compared: {predictions: p.npz, reference: q.npz}\n"
        "  raters: {predictions: raters.npz}\n"
        "  numbers: {predictions: r.npz}\n"
        "  sets: {predictions: p.npz, out: [out.npz]}\n"
        "  video: {video: v.npz}\n"
    )
    stores = (
        "stores: {a: {predictions: p.npz}, b: {predictions: r.npz}}\n"
        "evaluate: {a: {failure: {}}, b: {regression: {}}}\n"
    )
    waiver = "{until: 2030-01-01, by: me, why: known}"
    (root / "two.yaml").write_text(stores)
    (root / "waived.yaml").write_text(
        f"{stores}gate: {{failure.auroc: {{min: 1, waive: {waiver}}}}}\n"
    )
    (root / "drops.yaml").write_text(
        f"{stores}gate: {{failure.auroc: {{min: 0.001, max_drop: 0.1}}}}\n"
    )
