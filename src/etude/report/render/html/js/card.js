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
    const facts = Object.entries(one.facts).map(([title, value]) => [title, value, other.facts[title]]);
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
