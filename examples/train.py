#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small network trained from an image of Stele, on any number of ranks.

    train.py --make DIR && stele build DIR shapes.stele
    train.py shapes.stele --epochs 3
    torchrun --nproc-per-node 2 train.py shapes.stele --checkpoint job.pt --stop-after 20
    torchrun --nproc-per-node 3 train.py shapes.stele --checkpoint job.pt

A job that stopped goes on where it was, with as many ranks as it then has: each sample of an
epoch is seen once. --seen FILE appends the keys that each rank was trained on.
"""

import argparse
import os
from pathlib import Path

import numpy
import stele
import torch
import torch.distributed as dist
from torch import nn

SIDE, CLASSES = 12, ("bar", "dot", "frame")


def make(top: str, count: int = 600) -> None:
    """Noisy pictures of three shapes, SIDE x SIDE bytes each: DIR/CLASS/NUMBER.raw."""
    random = numpy.random.default_rng(1)
    for number in range(count):
        picture = random.integers(0, 90, (SIDE, SIDE))
        x, y = random.integers(1, SIDE - 5, 2)
        shape = CLASSES[number % 3]
        if shape == "bar":
            picture[:, x] += 120
        else:
            picture[y : y + 4, x : x + 4] += 120
        if shape == "frame":
            picture[y + 1 : y + 3, x + 1 : x + 3] -= 110
        path = Path(top, shape, f"{number:04}.raw")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.clip(0, 255).astype(numpy.uint8).tobytes())


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
        nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(64, len(CLASSES)),
    )  # fmt: skip


def tensors(batch: stele.Batch) -> tuple[torch.Tensor, torch.Tensor]:
    pictures = torch.frombuffer(bytearray(batch.buffer), dtype=torch.uint8)
    labels = torch.utils.dlpack.from_dlpack(batch.stack("label"))
    return pictures.view(-1, 1, SIDE, SIDE).float() / 255, labels


def train(args: argparse.Namespace, rank: int, world: int) -> None:
    model = network()
    if world > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    loader = stele.Loader(
        stele.open(args.target), batch_size=args.batch_size, seed=1, rank=rank, world_size=world
    )
    if args.checkpoint and os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint)
        getattr(model, "module", model).load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
    steps = 0
    for epoch in range(loader.epoch, args.epochs):
        loader.set_epoch(epoch)
        losses = []
        for batch in loader:
            pictures, labels = tensors(batch)
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if args.seen:
                with open(f"{args.seen}.{rank}", "a") as file:
                    seen = batch[: len(batch) - batch.padded]
                    file.writelines(f"{epoch} {s.key}\n" for s in seen)
            steps += 1
            if steps == args.stop_after:
                break
        if rank == 0:
            print(f"epoch {epoch}: loss {sum(losses) / max(len(losses), 1):.3f}", flush=True)
        if steps == args.stop_after:
            break
    if args.checkpoint and rank == 0:
        saved = {
            "model": getattr(model, "module", model).state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": loader.state_dict(),
        }
        torch.save(saved, args.checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description="a small network, trained from Stele")
    parser.add_argument("target", nargs="?")
    parser.add_argument("--make", metavar="DIR", help="write the samples there, and no more")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--checkpoint", help="where to begin, and to save at the end")
    parser.add_argument("--stop-after", type=int, default=0, metavar="STEPS")
    parser.add_argument("--seen", help="write what was seen into FILE.RANK")
    args = parser.parse_args()
    if args.make:
        make(args.make)
        return
    if not args.target:
        parser.error("a target is missing")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group("gloo")
    train(args, rank, world)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
