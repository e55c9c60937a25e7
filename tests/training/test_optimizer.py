"""Adam against the paper's algorithm in plain numpy, with the paper's constants and its learning rates."""

import re
from functools import partial

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from torch.testing import assert_close

from etude.config.compose import compose
from etude.config.resolve import resolve, resolve_valid
from etude.errors import UserError
from etude.store.identity import run_identity
from etude.tasks import build
from etude.training.module import TrainingModule
from etude.training.optimizer import adam, make_optimizer
from etude.training.schedule import as_scheduler


def numpy_adam(weights, gradient_of, rates, *, beta1=0.9, beta2=0.98, eps=1e-9):
    """Algorithm 1 of Kingma and Ba (2015), with a learning rate for every update; the weights after each."""
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    trajectory = []
    for step, rate in enumerate(rates, start=1):
        gradient = gradient_of(weights)
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
        corrected = first / (1 - beta1**step), second / (1 - beta2**step)
        weights = weights - rate * corrected[0] / (np.sqrt(corrected[1]) + eps)
        trajectory.append(weights)
    return trajectory


def test_adam_follows_kingma_and_ba_with_the_papers_constants():
    weight = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    optimizer = adam([weight], beta1=0.9, beta2=0.98, eps=1e-9)
    optimizer.param_groups[0]["lr"] = 0.01
    gradients = [np.array([0.3 * step, -1.0 / step]) for step in range(1, 6)]
    following = iter(gradients)
    expected = numpy_adam(np.array([1.0, -2.0]), lambda weights: next(following), rates=[0.01] * 5)
    for gradient, after in zip(gradients, expected, strict=True):
        weight.grad = torch.from_numpy(gradient)
        optimizer.step()
        assert_close(weight.detach(), torch.from_numpy(after))


def test_a_tiny_gradient_meets_the_papers_epsilon():
    """Where the gradient is as small as epsilon, a step is half as long as the rate."""
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = adam([weight], beta1=0.9, beta2=0.98, eps=1e-9)
    weight.grad = torch.full((1,), 1e-9, dtype=torch.float64)
    optimizer.step()
    assert weight.item() == pytest.approx(-0.5)


def test_an_optimizer_with_a_rate_of_its_own_is_refused():
    module = TrainingModule(
        torch.nn.Linear(2, 2),
        loss=lambda logits, targets: logits.sum(),
        nll=lambda logits, targets: logits.sum(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, fused=True),
        scheduler=as_scheduler(lambda update: 1.0, 1),
        seed=1,
    )
    with pytest.raises(UserError, match=r"AdamW is made with lr=0\.001, which would multiply .*: say optimizer\.lr=1"):
        module.configure_optimizers()


def test_training_follows_the_papers_adam_at_the_papers_rates_through_warmup_and_after():
    """The optimizer and schedule that `conf/` gives the base model, stepped as Lightning steps them."""
    warmup, updates = 8, 24
    config = resolve(compose(["scale=full", f"budget.warmup_steps={warmup}"]))
    model = torch.nn.Linear(3, 2, bias=False, dtype=torch.float64)
    curvature = torch.linspace(0.5, 3.0, 6, dtype=torch.float64).reshape(2, 3)
    start = model.weight.detach().numpy().copy()
    module = TrainingModule(
        model,
        loss=lambda logits, targets: logits.sum(),
        nll=lambda logits, targets: logits.sum(),
        optimizer=partial(make_optimizer, config["optimizer"]),
        scheduler=as_scheduler(instantiate(config["schedule"]), updates),
        seed=1,
    )
    made = module.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    rates = [512**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in range(1, updates + 1)]
    expected = numpy_adam(start, lambda weights: curvature.numpy() * np.sin(weights), rates)
    for after in expected:
        optimizer.zero_grad()
        (curvature * (1 - torch.cos(model.weight))).sum().backward()
        optimizer.step()
        scheduler.step()
        assert_close(model.weight.detach(), torch.from_numpy(after))


GROUPED = r"optimizer.groups=[{match: 'norm|bias|embedding', weight_decay: 0.0}]"


def of_model(*typed):
    """The optimizer of a config, made for its model; and the model's weights by name."""
    config = resolve(compose(["trainer=cpu", "model.n_layers=1", *typed]))
    named = dict(build.model(config, 50).named_parameters())
    return make_optimizer(config["optimizer"], named.items()), named


def names_in(group, named):
    return {name for name, weight in named.items() if any(weight is one for one in group["params"])}


@pytest.mark.parametrize("name", ["adamw", "muon", "sgd", "adafactor"])
def test_norms_biases_and_embeddings_can_be_left_without_decay(name):
    optimizer, named = of_model(f"optimizer={name}", "optimizer.weight_decay=0.3", GROUPED)
    decayed = [names_in(group, named) for group in optimizer.param_groups if group["weight_decay"] == 0.3]
    spared = [names_in(group, named) for group in optimizer.param_groups if group["weight_decay"] == 0]
    assert set.union(*spared) == {one for one in named if re.search("norm|bias|embedding", one)}
    assert set.union(*spared, *decayed) == named.keys()
    assert optimizer.param_groups[0]["weight_decay"] == 0.3  # whose learning rate is logged


def test_a_parameter_belongs_to_the_first_group_that_matches_it():
    optimizer, named = of_model("optimizer=adamw", "optimizer.groups=[{match: norm, lr: 0.5}, {match: bias, lr: 0.1}]")
    rest, norms, biases = (names_in(group, named) for group in optimizer.param_groups)
    assert {"encoder.layers.0.attention_residual.norm.bias"} <= norms
    assert biases == {name for name in named if name.endswith("bias") and "norm" not in name}
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.5, 0.1]
    assert rest.isdisjoint(norms | biases)


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (
            "{match: nrom, lr: 0.5}",
            r"'nrom' matches no parameter .*encoder\.layers\.\*\.attention_residual\.norm\.weight",
        ),
        ("{match: bias, weight_dcay: 0}", r"AdamW has no weight_dcay for a group; did you mean weight_decay"),
        ("{weight_decay: 0}", r"optimizer\.groups\[0\] must have in `match` a pattern"),
        ("{match: '('}", r"optimizer\.groups\[0\] must have in `match` a pattern .*unterminated"),
    ],
)
def test_a_group_that_cannot_be_is_told_with_the_names_that_there_are(group, told):
    def freeze_and_make():
        resolve_valid(compose(["optimizer=adamw", f"optimizer.groups=[{group}]"]))
        of_model("optimizer=adamw", f"optimizer.groups=[{group}]")

    with pytest.raises(UserError, match=told):
        freeze_and_make()


SMALL = [("matrix", torch.zeros(2, 2, requires_grad=True)), ("bias", torch.zeros(2, requires_grad=True))]


class Idle:
    """It takes parameters, and is no optimizer."""

    def __init__(self, parameters):
        pass


def test_what_is_no_optimizer_is_refused():
    with pytest.raises(UserError, match=r"optimizer: .*Idle is not a torch\.optim\.Optimizer"):
        make_optimizer({"_target_": f"{__name__}.Idle", "_partial_": True}, [])


def test_groups_make_another_run_and_no_groups_the_run_of_before():
    without, none = (resolve(compose(["optimizer=adamw", *typed])) for typed in (["~optimizer.groups"], []))
    assert run_identity(without) == run_identity(none)
    assert run_identity(resolve(compose(["optimizer=adamw", GROUPED]))) != run_identity(none)


def test_muon_moves_hidden_matrices_as_torchs_muon_and_all_else_as_torchs_adamw():
    optimizer, named = of_model("optimizer=muon", "optimizer.lr=0.02")
    theirs = {name: weight.detach().clone().requires_grad_() for name, weight in named.items()}
    hidden = {name for name, weight in named.items() if weight.ndim == 2 and "embedding" not in name}
    muon = torch.optim.Muon(
        [theirs[name] for name in hidden], lr=0.02, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
    )
    adamw = torch.optim.AdamW(
        [theirs[name] for name in named.keys() - hidden], lr=0.02, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01
    )
    for step in range(3):
        torch.manual_seed(step)
        for name, weight in named.items():
            weight.grad = torch.randn_like(weight)
            theirs[name].grad = weight.grad.clone()
        if step == 2:  # as a run that goes on: the state is another's
            state = optimizer.state_dict()
            optimizer = make_optimizer(resolve(compose(["optimizer=muon"]))["optimizer"], named.items())
            optimizer.load_state_dict(state)
        for one in (optimizer, muon, adamw):
            one.step()
    for name, weight in named.items():
        assert_close(weight, theirs[name], msg=name)


@pytest.mark.parametrize(
    ("typed", "no_matrix"),
    {
        "model/position=t5": "position",
        "model/attention=lightweight_convolution": r"layers\.\d\.attention\.weight",
        "model/residual=hyper model/norm=rms": r"\.mix$",
        "model/feedforward=product_key_memory model.n_layers=2": r"\.values$",
        "model/encoder=universal model/decoder=universal": "signal",
    }.items(),
)
def test_muon_leaves_tables_and_vectors_of_two_axes_to_adamw(typed, no_matrix):
    optimizer, named = of_model("optimizer=muon", *typed.split())
    for weight in named.values():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    by_muon = {name for name, weight in named.items() if "momentum_buffer" in optimizer.state[weight]}
    vectors = {name for name in named if re.search(f"embedding|{no_matrix}", name)}
    assert vectors & {name for name, weight in named.items() if weight.ndim == 2 and "embedding" not in name}
    assert by_muon == {name for name, weight in named.items() if weight.ndim == 2} - vectors


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_the_logged_rate_is_that_of_parameters_without_a_group(name):
    overrides = [f"optimizer={name}", "optimizer.groups=[{match: matrix, lr: 0.5}]"]
    optimizer = make_optimizer(resolve(compose(overrides))["optimizer"], SMALL)
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.5]


@pytest.mark.parametrize("values", ["adjust_lr_fn=match_rms", "betas=[0.9]", "momentum=-0.95", "weight_decay=-0.01"])
def test_muon_refuses_before_training_what_torchs_muon_and_adamw_refuse(values):
    with pytest.raises(UserError, match=r"\(etude\.training\.optimizer\.Muon\)"):
        make_optimizer(resolve(compose(["optimizer=muon", f"optimizer.{values}"]))["optimizer"], SMALL)


def test_a_pytorch_without_muon_is_told_the_version_that_has_it(monkeypatch):
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(UserError, match=r"needs PyTorch 2\.9 or newer, and this is "):
        make_optimizer(resolve(compose(["optimizer=muon"]))["optimizer"], SMALL)


def test_adafactor_is_the_papers_also_where_gradients_are_small():
    """Algorithms 4 and 5 of Shazeer and Stern 2018, with their floor of 1e-30 on squared gradients."""
    drawn = torch.Generator().manual_seed(3)
    weight = torch.nn.Parameter(torch.randn(6, 4, dtype=torch.float64, generator=drawn))
    optimizer = make_optimizer(resolve(compose(["optimizer=adafactor"]))["optimizer"], [("weight", weight)])
    expected, row, column = weight.detach().clone(), torch.zeros(6, 1), torch.zeros(1, 4)
    for step, size in enumerate([1e-4, 1e-5, 1e-5, 1e-6], start=1):
        gradient = size * torch.randn(6, 4, dtype=torch.float64, generator=drawn)
        kept = 1 - step**-0.8
        squared = gradient**2 + 1e-30
        row = kept * row + (1 - kept) * squared.mean(1, keepdim=True)
        column = kept * column + (1 - kept) * squared.mean(0, keepdim=True)
        update = gradient / (row * column / row.mean()).sqrt()
        update /= max(1.0, float(update.square().mean().sqrt()))
        rate = max(1e-3, float(expected.square().mean().sqrt())) * min(1.0, step**-0.5)
        expected = expected - rate * update
        weight.grad = gradient.clone()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-6, atol=1e-9)


class Direct(torch.optim.SGD):
    """An optimizer that does not compute the loss itself, as Lightning asks it to."""

    def step(self) -> None:  # type: ignore[override]
        super().step()


class Usual(torch.optim.SGD):
    """One that is as PyTorch's are."""


def made(name):
    node = {"_target_": f"{__name__}.{name}", "_partial_": True, "lr": 1.0}
    return make_optimizer(node, [("w", torch.zeros(1, requires_grad=True))])


def test_an_optimizer_that_takes_no_closure_is_refused_before_training():
    with pytest.raises(UserError, match=r"optimizer: `step` of .*Direct must take a closure"):
        made("Direct")
    made("Usual")


def test_adamw_on_matrices_decays_matrices_alone_and_not_those_that_are_named():
    for undecayed, spared in (("", "^$"), ("embedding", "embedding")):
        optimizer, named = of_model("optimizer=adamw_on_matrices", f"optimizer.undecayed={undecayed!r}")
        decayed, rest = (names_in(group, named) for group in optimizer.param_groups)
        assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
        assert decayed == {name for name, weight in named.items() if weight.ndim == 2 and not re.search(spared, name)}
        assert decayed | rest == named.keys()


def test_rates_of_mup_fall_with_the_width_for_matrices_and_with_its_root_for_tables():
    optimizer, named = of_model("optimizer=adam_mup", "model.d_model=256", "model/position=learned")
    rates = {group["lr"]: names_in(group, named) for group in optimizer.param_groups}
    assert optimizer.param_groups[0]["lr"] == 1.0  # which is logged
    tables = {name for name in named if re.search("embedding|position", name)}
    matrices = {name for name, weight in named.items() if weight.ndim == 2} - tables
    assert rates == {1.0: named.keys() - tables - matrices, 0.5: tables, 0.25: matrices}


def test_a_rate_of_a_group_s_own_multiplies_that_of_mup():
    group = "optimizer.groups=[{match: encoder, lr: 0.5}]"
    optimizer, named = of_model("optimizer=adam_mup", "model.d_model=256", group)
    for one in optimizer.param_groups:
        for name in names_in(one, named):
            of_mup = 1.0 if named[name].ndim < 2 else 0.5 if "embedding" in name else 0.25
            assert one["lr"] == of_mup * (0.5 if "encoder" in name else 1.0), name


@pytest.mark.parametrize(
    ("typed", "of_vectors"),
    {
        "model/position=t5": "position",
        "model/position=shaw": "position",
        "model/attention=lightweight_convolution": r"layers\.\d\.attention\.weight",
        "model/attention=differential": "lambdas",
        "model/attention=synthesizer model/attention/scores=factorized": r"\.(rows|columns)$",
        "model/residual=hyper model/norm=rms": r"\.mix$",
        "model/feedforward=product_key_memory model.n_layers=2": r"\.values$",
        "model/encoder=universal model/decoder=universal": "signal",
        "model/encoder=evolved model/decoder=evolved": r"\.each\.",
        "model/encoder=convolution model/position=learned": "^$",
        "model/tying=none_normed": "^$",
    }.items(),
)
def test_of_mup_what_does_not_sum_over_the_width_learns_as_vectors_do(typed, of_vectors):
    optimizer, named = of_model("optimizer=adam_mup", "model.d_model=256", *typed.split())
    rates = {name: group["lr"] for group in optimizer.param_groups for name in names_in(group, named)}
    matrices = [name for name, weight in named.items() if weight.ndim > 1]
    tables = {name for name in matrices if re.search(r"embedding|position\.table\.weight", name)}
    vectors = {name for name, weight in named.items() if weight.ndim < 2 or re.search(of_vectors, name)} - tables
    assert rates == {name: 0.5 if name in tables else 1.0 if name in vectors else 0.25 for name in named}


def change_of_logits(width, *typed):
    """The mean change of a logit by four updates at one rate: the coordinate check of Yang et al. (2022)."""
    sizes = ["heads=4", "n_layers=2", "dropout=0.0", f"d_model={width}", f"d_ff={2 * width}"]
    typed = [*typed, "task=language_modelling", "model/residual=pre", *(f"model.{size}" for size in sizes)]
    config = resolve(compose(["trainer=cpu", *typed]))
    model = build.model(config, 30)
    optimizer = make_optimizer(config["optimizer"], model.named_parameters())
    for group in optimizer.param_groups:
        group["lr"] *= 0.01
    tokens = torch.randint(4, 30, (4, 8), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    before = model(tokens, mask, tokens).detach()
    for _ in range(4):
        optimizer.zero_grad()
        logits = model(tokens, mask, tokens)[:, :-1]
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
    return float((model(tokens, mask, tokens) - before).detach().abs().mean())


def test_updates_of_mup_change_logits_of_any_width_alike_where_those_of_adam_grow():
    narrow, wide = (change_of_logits(width, "optimizer=adam_mup") for width in (32, 128))
    assert 0.67 < wide / narrow < 1.5
    narrow, wide = (change_of_logits(width, "optimizer=adam") for width in (32, 128))
    assert wide / narrow > 1.7
