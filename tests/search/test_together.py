"""Searches that are carried out together are those that each would be alone."""

from pathlib import Path

from tests.search.world import World, carry_out, search, table

from etude.search.engine import Engine
from etude.search.search import Promotion
from etude.search.together import Together


def test_each_search_is_asked_in_turn_and_decides_as_if_it_were_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    asked = [search(name=name, fixed=(f"arm={name}",), promotion=Promotion(), n_trials=9) for name in ("a", "b", "c")]
    engines = [Engine(one, world.runs_dir, "single", world.freeze) for one in asked]
    source = Together(engines)
    most = 0
    while runs := source.more(2):
        counts = [len(engine.journal.trials()) for engine in engines]
        most = max(most, max(counts) - min(counts))
        for run, _ in runs:
            state = world.train(run)
            source.watch()
            source.ended(run, state)
    for one, engine in zip(asked, engines, strict=True):
        assert table(engine) == table(carry_out(one, World(tmp_path / f"alone-{one.name}")))
    assert most <= 3
