# SPDX-License-Identifier: Apache-2.0
"""A program as users write it, for type checkers; it is not run."""

import asyncio

import numpy
import numpy.typing
import stele


def sizes(batch: stele.Batch) -> list[int]:
    return [len(sample) for sample in batch]


def use() -> None:
    ds: stele.Dataset = stele.open("/dev/null", verify="crc")
    sample: stele.Sample = ds[0]
    more: list[stele.Sample] = ds[[1, 2]] + ds[numpy.array([3])] + ds[4:6]
    data: bytes = bytes(sample) + bytes(memoryview(more[0]))
    labels: numpy.typing.NDArray[numpy.int64] = ds.column("label")
    part: stele.Dataset = ds.subset(range(10)).subset(prefix="x")
    for sample in part:
        print(sample.key, sample.id, sample["label"], data, labels)
    for key in ds.keys("a"):
        print(key.upper())
    with stele.Loader(ds, batch_size=3, shuffle="windowed") as loader:
        for batch in loader:
            print(batch.buffer, batch.stack("image").numpy(), batch[0].key, batch[1:])
        state: stele.State = loader.state_dict()
        loader.load_state_dict(state)
    for counts in stele.Loader([(ds, 1.0)], transform=sizes, seed=3):
        print(sum(counts))
    try:
        ds["key"]
    except stele.ChecksumError as error:
        print(error.id, error.key, error.errno)


async def use_async(ds: stele.Dataset) -> None:
    async for batch in stele.Loader(ds):
        print(len(batch))


if __name__ == "__main__":
    use()
    asyncio.run(use_async(stele.open("x")))
