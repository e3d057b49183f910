#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""train.py's network under Lightning: lightning_loop.py TARGET [CHECKPOINT].

A DataModule's state goes into Lightning's checkpoints, so it is the place of the loader's.
"""

import sys

import lightning
import stele
import torch
import train


class Shapes(lightning.LightningDataModule):
    def __init__(self, target: str) -> None:
        super().__init__()
        self.target, self.state = target, {}
        self.loader: stele.Loader | None = None

    def train_dataloader(self) -> stele.Loader:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        loader = self.loader = stele.Loader(
            stele.open(self.target), batch_size=16, seed=1, rank=rank, world_size=world,
            transform=train.tensors,
        )  # fmt: skip
        if self.state:
            loader.load_state_dict(self.state)
        return loader

    def state_dict(self) -> dict:
        return dict(self.loader.state_dict()) if self.loader else {}

    def load_state_dict(self, state: dict) -> None:
        self.state = state


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = train.network()

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        pictures, labels = batch
        loss = torch.nn.functional.cross_entropy(self.network(pictures), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 0.01)


def main() -> None:
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_checkpointing=False, use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(Model(), Shapes(sys.argv[1]), ckpt_path=(sys.argv[2:] or [None])[0])
    print(f"loss {trainer.callback_metrics['loss']:.3f}")


if __name__ == "__main__":
    main()
