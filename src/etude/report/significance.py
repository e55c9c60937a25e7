"""Test each arm of a study against its reference arm, by each metric."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from etude.report import statistics as st
from etude.report.comparison import Against, ArmResult, Difference, Spread
from etude.report.wording import join_words
from etude.study.metrics import Metric
from etude.study.study import Study


def test_arms(study: Study, pairs: Mapping[str, tuple[ArmResult, ArmResult]]) -> dict[str, Against]:
    """Test each arm against its reference arm, and correct for the number of arms.

    Args:
        study: the study.
        pairs: by arm, its scores and those of its reference arm, which are comparable with each other.
    """
    measured = {arm.arm: arm for pair in pairs.values() for arm in reversed(pair) if arm.scores}
    measured |= {name: arm for name, (arm, _) in pairs.items() if arm.scores}
    # one training counts once, with all the seeds that any of its arms has
    trained = {arm.training: arm for arm in sorted(measured.values(), key=lambda arm: len(arm.runs))}
    priors = {
        name: st.moderate([arm.scores[name] for arm in trained.values() if name in arm.scores])
        for name in study.metrics
    }
    found = {
        name: Against(reference.arm, _test_metrics(study, arm, reference, priors))
        for name, (arm, reference) in pairs.items()
    }
    for metric in study.metrics:
        tests = {name: its.differences[metric].test for name, its in found.items() if metric in its.differences}
        for name, p in st.holm({name: test.p for name, test in tests.items() if test.p is not None}).items():
            found[name].differences[metric] = replace(found[name].differences[metric], holm=p)
    return found


def _test_metrics(
    study: Study, arm: ArmResult, base: ArmResult, priors: Mapping[str, st.Prior | None]
) -> dict[str, Difference]:
    """Test one arm against another by each metric, not yet corrected for the number of arms.

    `priors` holds by metric the prior of the variance over seeds, estimated from all arms of the study.
    """
    found, why_not = {}, _why_not(arm, base)
    if arm.training == base.training:
        arm, base = _at_common_seeds(arm, base)
    fair = arm.seeds == base.seeds and not (arm.diverged or base.diverged)
    for name, metric in study.metrics.items():
        if name in arm.scores and name in base.scores:
            difference = _difference(study, metric, arm, base, priors[name])
            if why_not:
                interval = difference.test.interval if fair else None
                test = replace(difference.test, interval=interval, p=None, why_not=why_not)
                difference = replace(difference, test=test, tie=None)
            found[name] = difference
    return found


def _at_common_seeds(arm: ArmResult, base: ArmResult) -> tuple[ArmResult, ArmResult]:
    """Return two arms of the same trainings at the seeds that both have; as they are if there is none."""
    common = {*arm.seeds} & {*base.seeds}
    return (_at(arm, common), _at(base, common)) if common else (arm, base)


def _at(arm: ArmResult, seeds: Collection[int]) -> ArmResult:
    """Return an arm with the scores and sentences of some of its seeds."""
    kept = [place for place, seed in enumerate(arm.seeds) if seed in seeds]
    of_all = arm.sentences
    return replace(
        arm,
        runs=[arm.runs[place] for place in kept],
        scores={name: replace(one, values=[one.values[place] for place in kept]) for name, one in arm.scores.items()},
        sentences=of_all
        and replace(of_all, counts=replace(of_all.counts, counts=of_all.counts.counts[kept]), bleu=of_all.bleu[kept]),
    )


def _why_not(arm: ArmResult, base: ArmResult) -> str:
    """Say why no test of two arms means anything, whatever their scores; an empty string if it does."""
    if arm.training == base.training and arm.seeds != base.seeds:
        some = "only some" if {*arm.seeds} & {*base.seeds} else "none"
        return f"the trainings are those of {base.arm}, and {some} of the seeds are"
    for side in (arm, base):
        if side.diverged:
            seeds = join_words([str(run.seed) for run in side.diverged])
            those = f"seed{'s' * (len(side.diverged) > 1)} {seeds} of {side.arm}"
            return f"{those} diverged, and the others do not stand for it"
    return ""


def _difference(study: Study, metric: Metric, arm: ArmResult, base: ArmResult, prior: st.Prior | None) -> Difference:
    ours, theirs = arm.scores[metric.name], base.scores[metric.name]
    shared = arm.training == base.training and arm.seeds == base.seeds
    if metric.sentences:
        return _over_sentences(ours, theirs, arm.sentences, base.sentences, shared)
    if shared:
        return Difference(st.paired_test(ours, theirs))
    margin = study.criteria.margin if study.criteria and metric == study.lead and metric.is_log else None
    tie = st.equivalence(ours, theirs, prior, margin) if prior and margin else None
    return Difference(st.moderated_test(ours, theirs, prior), tie=tie)


def _over_sentences(
    ours: st.Scores, theirs: st.Scores, arm: st.Resampled | None, base: st.Resampled | None, shared: bool
) -> Difference:
    g = st.hedges_g(ours, theirs)
    if not (arm and base):
        why = "without the translations of both, other sentences cannot be resampled"
        return Difference(st.Comparison(ours.mean - theirs.mean, None, None, why), hedges_g=g)
    alike = arm.counts.runs == base.counts.runs
    of_run = st.pooled_deviation(ours, theirs) if min(ours.seeds, theirs.seeds) > 1 and not shared else 0.0
    return Difference(
        st.combined_test(arm, base, shared),
        bootstrap=st.paired_bootstrap(arm, base),
        randomisation=st.approximate_randomisation(arm.counts, base.counts) if alike else None,
        hedges_g=g,
        spread=Spread(of_run, st.sentence_deviation(arm, base)) if of_run else None,
    )
