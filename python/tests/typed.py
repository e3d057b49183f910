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
    mask: numpy.typing.NDArray[numpy.bool] = labels == 3
    more += ds[mask]
    part: stele.Dataset = ds.subset(mask).subset(range(10)).subset(prefix="x")
    for sample in part:
        print(sample.key, sample.id, sample["label"], data, labels)
    for key in ds.keys("a"):
        print(key.upper())
    with stele.Loader(ds, batch_size=3, shuffle="windowed") as loader:
        for batch in loader:
            print(batch.buffer, batch.stack("image").numpy(), batch[0].key, batch[1:])
        state: stele.State = loader.state_dict()
        loader.load_state_dict(state)
        saved: dict[str, object] = {**state}
        loader.load_state_dict(saved)
    for counts in stele.Loader([(ds, 1.0)], transform=sizes, seed=3):
        print(sum(counts))
    try:
        ds["key"]
    except stele.ChecksumError as error:
        print(error.id, error.key, error.errno)


def write(image: numpy.typing.NDArray[numpy.uint8]) -> stele.Snapshot:
    schema: stele.Schema = {
        "image": stele.tensor("uint8", (None, 28, 28)),
        "label": ["cat", "dog"],
        "caption": str,
        "score": float,
    }
    with stele.Writer("x@v1", schema, update=True, granule=64, progress=print) as writer:
        writer.put("a", {"image": image, "label": "cat", "caption": "", "score": 1.0})
        writer.extend({"b": {"image": image}})
        writer.extend([{"__key__": "d", "image": image}])
        writer.extend((f"{i}", {"image": image}) for i in range(3))
        writer.delete(b"c")
        return writer.commit()


def show(progress: stele.Progress) -> None:
    print(progress.phase, progress.samples_done)


def verbs() -> None:
    report: stele.BuildReport = stele.build("photos", "x@v1", order="source", jobs=3)
    more: stele.BuildReport = stele.append("photos", "x@v2", update=True, progress=show)
    print(report.digest, [skipped.reason for skipped in more.skipped])
    print([snapshot.name for snapshot in stele.snapshots("x")], stele.image_info("x").label)
    print([(d.kind == "added", d.b_size) for d in stele.diff("x@v1", "x@v2")])
    stele.snapshot_create("x@v3", delete=["a", b"b"])
    stele.snapshot_rename("x@v3", "v4")
    stele.snapshot_delete("x@v1", "x@v2", force=True)
    stele.snapshot_undelete("x@v1", "old")
    stele.compact("x@v4", "v5", memory_size=1 << 30)
    print(stele.gc("x", grace=60).freed_size, stele.resize("x", 1 << 30).new_size)
    print(stele.copy("x@v5", "y", progress=True).seconds)
    for damage in stele.verify("x").damage:
        print(damage.key, damage.detail)


async def use_async(ds: stele.Dataset) -> None:
    async for batch in stele.Loader(ds):
        print(len(batch))


if __name__ == "__main__":
    use()
    asyncio.run(use_async(stele.open("x")))
