"""MC dropout in PyTorch, written sample by sample: `python dump_mc_dropout.py [FOLDER]`.

The network is tiny and untrained and the images are noise; what counts are the five lines of the
loop at the end.
"""

import sys
from pathlib import Path

import torch
from torch import nn

from uqeval import PredictionWriter

SAMPLES, CLASSES, SIZE = 8, 5, (64, 96)


def main(folder: Path) -> Path:
    """Write `predictions.zarr` of four random images, with labels, into `folder`."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Dropout2d(0.3),
        nn.Conv2d(16, CLASSES, 3, padding=1),
    )
    images = {f"street_{number:03}": torch.rand(3, *SIZE) for number in range(4)}
    path = folder / "predictions.zarr"
    net.eval()
    for layer in net.modules():
        if isinstance(layer, nn.Dropout2d):
            layer.train()  # dropout goes on drawing, everything else (batch norm) is as in a test

    about = {"names": list(images), "samples": SAMPLES, "classes": CLASSES, "size": SIZE}
    with torch.no_grad(), PredictionWriter(path, **about, sample_kind="mc-dropout") as writer:
        for name, image in images.items():
            for t in range(SAMPLES):
                probs = net(image[None])[0].softmax(0)  # [class, y, x]; on a GPU, half: all right
                writer.add(name, probs, sample=t)

        # Store labels here, or give a folder of label PNGs to `uqeval` later.
        for name in images:
            writer.add_labels(name, torch.randint(CLASSES, SIZE))
    return path


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
