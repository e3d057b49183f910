#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plain loop over pictures, as with torchvision: imagefolder.py TARGET/train."""

import sys

import numpy
import torch
from stele.torch import ImageFolder, Sampler  # instead of torchvision.datasets
from torch.utils.data import DataLoader


def tensor(picture) -> torch.Tensor:
    pixels = numpy.array(picture.resize((32, 32)), dtype=numpy.float32)
    return torch.from_numpy(pixels).permute(2, 0, 1) / 255


def main() -> None:
    data = ImageFolder(sys.argv[1], tensor)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, len(data.classes)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    sampler = Sampler(data, seed=1)
    loss = torch.zeros(())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for pictures, labels in DataLoader(data, 8, sampler=sampler, num_workers=2):
            loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
