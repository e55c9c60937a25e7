// Two arms side by side: what was changed, what it cost, what it brought, where their translations differ.

(() => {
  if (!ARMS.length) return;
  const names = Object.fromEntries(ARMS.map(({ name }) => [name, name]));
  const section = document.getElementById("arms");
  section.hidden = false;
  const preferred = ARMS.find((arm) => arm.name !== DATA.baseline) ?? ARMS[0];
  const a = chooser("arms-a", "Compare", names, preferred.name, () => change());
  const b = chooser("arms-b", "with", names, BY_NAME.has(DATA.baseline) ? DATA.baseline : ARMS[0].name, () => change());
  const pair = () => [BY_NAME.get(a.value), BY_NAME.get(b.value)];

  const mean = (told, digits) =>
    told ? format(told.value, digits) + (told.interval ? ` (${range(told.interval, digits)})` : "") : NOTHING;

  const headline = METRICS[DATA.headline];

  const FACTS = {
    "what is changed": (arm) => arm.overrides.join("  ") || "nothing",
    ...Object.fromEntries(
      Object.entries(offeredMetrics()).map(([name, label], n) => [
        n ? label : `${label} (95 % interval over seeds)`,
        (arm) => mean(arm.means[name], METRICS[name].digits),
      ]),
    ),
    "parameters": (arm) => format(arm.parameters),
    "steps": (arm) => format(arm.steps),
    "target tokens": (arm) => format(arm.tokens),
    "training FLOPs": (arm) => (isKnown(arm.flops) ? arm.flops.toExponential(2) : NOTHING),
    [`${TIME} of training`]: (arm) => (isKnown(arm.seconds) ? format(arm.seconds / SECONDS, 1) : NOTHING),
    "budget beside the baseline’s": budget,
    [`seeds (${headline.label})`]: (arm) =>
      arm.runs.map((run) => `${run.seed} (${format(run.score, headline.digits)})`).join(", "),
    [`variance of ${headline.label}, seeds / test sets`]: (arm) =>
      arm.variances ? `${format(arm.variances.seeds, 2)} / ${format(arm.variances.test_set, 2)}` : NOTHING,
    "run": (arm) => arm.runs.map((run) => run.path).join("\n"),
  };

  /** Every config key in which the two differ; what an arm does not name is as in the baseline. */
  function configs(one, other) {
    const value = (arm, key) => (key in arm.config ? arm.config[key] : DATA.config[key]);
    const keys = [...new Set([...Object.keys(one.config), ...Object.keys(other.config)])];
    return keys.map((key) => [key, value(one, key), value(other, key)]).filter(([, mine, theirs]) => mine !== theirs);
  }

  function buckets() {
    const arms = [...new Set(pair())].filter((arm) => arm.buckets);  // translations of another text have none
    const labels = DATA.buckets.map(({ label }) => label);
    return {
      traces: arms.map((arm) => ({
        ...look(arm.name, 9), x: labels, y: arm.buckets, mode: "lines+markers", hovertemplate: "%{y:.1f}",
      })),
      layout: {
        height: 340,
        hovermode: "x unified",
        showlegend: true,
        legend: { orientation: "h", y: 1.14 },
        xaxis: axis("words in the source sentence", [], { type: "category" }),
        yaxis: axis("BLEU"),
      },
      label: `BLEU by the length of the source, ${arms.map((arm) => arm.name).join(" and ")}`,
      caption: "Words of the source sentence; each point is the mean over the seeds of the arm.",
      head: ["words", "sentences", ...arms.map((arm) => arm.name)],
      rows: DATA.buckets.map(({ label, sentences }, i) => [label, format(sentences), ...arms.map((arm) => format(arm.buckets[i], 1))]),
    };
  }

  const redraw = DATA.buckets.length ? figure(document.getElementById("buckets"), buckets) : () => {};

  function change() {
    const [one, other] = pair();
    const facts = Object.entries(FACTS).map(([name, fact]) => [name, fact(one), fact(other)]);
    const different = configs(one, other);
    const head = ["", one.name, other.name];
    document.getElementById("card").replaceChildren(
      table(`${one.name} and ${other.name}`, head, facts),
      h("h3", {}, "What differs in the config"),
      different.length
        ? table("Config", ["key", one.name, other.name], different)
        : h("p", { class: "hint" }, "Nothing."),
    );
    redraw();
    showSamples(one, other);
  }
  change();
})();
