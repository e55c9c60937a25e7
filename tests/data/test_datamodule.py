import torch
from lightning import LightningModule, Trainer

from etude.data.batching import Batch
from etude.data.datamodule import TextDataModule
from etude.data.store import TokenStore


class Recorder(LightningModule):
    """Learns nothing; notes which rows it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.trained: list[list[int]] = []
        self.validated: list[int] = []

    def training_step(self, batch: Batch, _: int) -> torch.Tensor:
        self.trained.append(batch.rows.tolist())
        return self.weight.sum()

    def validation_step(self, batch: Batch, _: int) -> None:
        self.validated += batch.rows.tolist()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fitted(store: TokenStore, steps: int, start_step: int) -> Recorder:
    recorder = Recorder()
    data = TextDataModule(store, source_tokens=400, target_tokens=400, length_noise=2.0, seed=1, start_step=0)
    data.start_step = start_step
    trainer = Trainer(
        max_steps=steps,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        val_check_interval=steps,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
    )
    trainer.fit(recorder, datamodule=data)
    return recorder


def test_training_goes_on_at_the_step_it_is_told(store: TokenStore) -> None:
    whole, resumed = fitted(store, 40, start_step=0), fitted(store, 15, start_step=25)
    assert len(whole.trained) == 40
    assert resumed.trained == whole.trained[25:]


def test_validation_goes_through_every_row_once(store: TokenStore) -> None:
    assert sorted(fitted(store, 3, start_step=0).validated) == list(range(20))


def test_each_process_trains_on_its_share_of_every_batch_and_validates_on_all(store: TokenStore) -> None:
    data = TextDataModule(store, source_tokens=400, target_tokens=400, length_noise=2.0, seed=1, start_step=2)
    alone = [batch.rows.tolist() for _, batch in zip(range(10), data.train_dataloader(), strict=False)]
    whole = [batch.rows.tolist() for batch in data.val_dataloader()]

    class Strategy:
        root_device = torch.device("cpu")

    class Place:
        global_rank, world_size, accumulate_grad_batches, strategy = 1, 2, 1, Strategy

    data.trainer = Place()  # type: ignore[assignment]
    first = next(iter(data.train_dataloader()))
    assert first.rows.tolist() == alone[0][1::2]
    assert [batch.rows.tolist() for batch in data.val_dataloader()] == whole
