"""What W&B would not take is refused before anything is trained."""

import pytest

from etude.config.compose import compose
from etude.config.wandb_rules import MAX_TAG, check_wandb, make_tag
from etude.errors import UserError


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("tags=pilot", r"logger\.wandb\.tags must be a list, such as \[pilot\], not 'pilot'"),
        ("tags=[1]", r"logger\.wandb\.tags: 1 is not a tag of W&B, which is a text of 1 to 64 characters"),
        ("tags=['']", r"logger\.wandb\.tags: '' is not a tag"),
        (f"tags=[{'x' * 65}]", r"logger\.wandb\.tags: 'x+' is not a tag"),
        ("project=", r"logger\.wandb\.project=: the name of a project has 1 to 128 characters"),
        (f"project={'x' * 129}", r"the name of a project has 1 to 128 characters"),
        ("project=team/etude", r"no project of W&B has '/' in its name; .*logger\.wandb\.entity=TEAM"),
        ("entity=team/etude", r"logger\.wandb\.entity=team/etude: no entity of W&B has '/' in its name"),
        ("artifacts=checkpoint", r"logger\.wandb\.artifacts must be a list, such as \[checkpoint\]"),
        ("artifacts=[chekpoint]", r"logger\.wandb\.artifacts: no 'chekpoint'; did you mean checkpoint"),
    ],
)
def test_what_wandb_would_refuse_is_one_sentence(override: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_wandb(compose([f"logger.wandb.{override}"]))


@pytest.mark.parametrize(
    "override", [f"tags=[pilot,{'x' * 64}]", f"project={'x' * 128}", "entity=team", "artifacts=[checkpoint]"]
)
def test_what_wandb_takes_is_taken(override: str) -> None:
    check_wandb(compose([f"logger.wandb.{override}"]))


def test_the_tags_of_studies_with_long_names_are_taken_and_differ() -> None:
    assert make_tag("study", "table3") == "study=table3"
    tags = [make_tag("study", f"{'x' * 58}{end}") for end in ("", "a", "b", "a" * 99)]
    assert len(set(tags)) == len(tags)
    assert {len(tag) for tag in tags} == {MAX_TAG}
