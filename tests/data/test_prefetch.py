"""The next batch is on its way to a GPU while a step computes on the one before."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from etude.data.batching import Batch, BatchStream
from etude.data.datamodule import Prefetched, TextDataModule
from etude.data.store import TokenStore


class Streams:
    """Stands in for the streams of a GPU: notes what is put on them, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.current, self.copies = list[str](), "computing", 0
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: self)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self)
        monkeypatch.setattr(torch.cuda, "stream", self.inside)
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: self.log.append("kept"))

    @contextmanager
    def inside(self, stream: "Streams") -> Iterator[None]:
        self.current = "copying"
        yield
        self.current = "computing"

    def record_event(self) -> str:
        return f"copy {self.copies}"

    def wait_event(self, event: str) -> None:
        self.log.append(f"{self.current} waits for {event}")


@pytest.fixture
def batches(store: TokenStore) -> list[Batch]:
    stream = BatchStream(
        store.split("train"),
        source_tokens=400,
        target_tokens=400,
        length_noise=2.0,
        seed=1,
        start=0,
        rank=0,
        world_size=1,
        micro_batches=1,
    )
    return [batch for _, batch in zip(range(3), stream, strict=False)]


def test_a_batch_is_copied_before_the_step_on_the_one_before_and_waited_for_after(
    batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(monkeypatch)

    def copy(batch: Batch, device: torch.device) -> Batch:
        assert device.type == "cuda"
        streams.copies += 1
        streams.log.append(f"{streams.current} makes copy {streams.copies}")
        return batch

    monkeypatch.setattr(Batch, "to", copy)
    for step, batch in enumerate(Prefetched(batches, torch.device("cuda")), start=1):
        assert batch is batches[step - 1]
        streams.log.append(f"step {step}")
    kept = ["kept"] * 4  # the tensors of a batch, by the allocator
    assert streams.log == [
        "copying makes copy 1",
        "copying makes copy 2",
        *("computing waits for copy 1", *kept, "step 1"),
        "copying makes copy 3",
        *("computing waits for copy 2", *kept, "step 2"),
        *("computing waits for copy 3", *kept, "step 3"),
    ]


def test_only_a_gpu_has_batches_copied_ahead(store: TokenStore) -> None:
    data = TextDataModule(store, source_tokens=400, target_tokens=400, length_noise=2.0, seed=1, start_step=0)
    for device, kind in (("cpu", BatchStream), ("cuda", Prefetched)):

        class Strategy:
            root_device = torch.device(device)

        class Place:
            global_rank, world_size, accumulate_grad_batches, strategy = 0, 1, 1, Strategy

        data.trainer = Place()  # type: ignore[assignment]
        assert type(data.train_dataloader()) is kind


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_is_copied_ahead_is_what_is_copied_when_it_is_needed(batches: list[Batch]) -> None:
    device = torch.device("cuda")
    for ahead, then in zip(Prefetched(batches, device), batches, strict=True):
        there = then.to(device)
        assert ahead.source.equal(there.source)
        assert ahead.target_out.equal(there.target_out)
