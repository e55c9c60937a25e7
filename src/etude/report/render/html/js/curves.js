// Learning curves of chosen arms, with the band over their seeds.

(() => {
  const NAMES = { valid_perplexity: "Validation perplexity", loss: "Training loss" };
  const X = { step: "steps", tokens: "target tokens", seconds: "seconds" };
  for (const key of DATA.arms.flatMap((arm) => Object.keys(arm.curves))) {
    NAMES[key] ??= `Validation ${key.replace("valid_", "").replace("bleu", "BLEU")}`;  // of budget.val_metrics
  }
  const withCurves = DATA.arms.filter((arm) => arm.curves.valid_perplexity || arm.curves.loss);
  if (!withCurves.length) return;

  /** Short runs have trained and were never validated on the way. */
  const Y = Object.fromEntries(Object.entries(NAMES).filter(([key]) => withCurves.some((arm) => arm.curves[key])));

  const section = document.getElementById("curves");
  const [y, x] = [
    chooser("curves-y", "Show", Y, Object.keys(Y)[0], () => redraw()),
    chooser("curves-x", "over", X, "step", () => redraw()),
  ];
  const picked = new Set(JSON.parse(memory.get("curves-picked")) ?? DATA.first_picked);
  for (const { name, state } of withCurves) {
    const box = h("input", { type: "checkbox", value: name });
    box.checked = picked.has(name);
    box.addEventListener("change", () => {
      picked[box.checked ? "add" : "delete"](name);
      memory.set("curves-picked", JSON.stringify([...picked]));
      redraw();
    });
    document.getElementById("curves-arms").append(h("label", {}, box, swatch(name), state ? `${name} (${state})` : name));
  }

  function traces(arm, curve, along) {
    const edge = { x: along, mode: "lines", line: { width: 0 }, hoverinfo: "skip", fillcolor: `${LOOKS.get(arm.name).colour}26` };
    const band = curve.seeds > 1 ? [{ ...edge, y: curve.low }, { ...edge, y: curve.high, fill: "tonexty" }] : [];
    const line = {
      ...look(arm.name, 7),
      x: along,
      y: curve.mean,
      mode: curve.mean.length <= 12 ? "lines+markers" : "lines",
      customdata: curve.mean.map((_, index) => [curve.low[index], curve.high[index]]),
      hovertemplate: curve.seeds > 1 ? "%{y:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})" : "%{y:.3f}",
    };
    return [...band, line];
  }

  /** Whether its perplexity is over other subwords than the baseline's. */
  const other = (arm) => y.value === "valid_perplexity" && !arm.same_tokens;

  function describe() {
    const ticked = withCurves.filter((arm) => picked.has(arm.name));
    const wanted = ticked.filter((arm) => arm.curves[y.value]);
    const without = ticked.filter((arm) => !arm.curves[y.value]).map((arm) => arm.name);
    const shown = wanted.filter((arm) => !other(arm));
    const hidden = wanted.filter(other).map((arm) => arm.name);
    const curves = shown.map((arm) => arm.curves[y.value]);
    const names = shown.map((arm) => arm.name).join(", ") || "no arm";
    return {
      traces: shown.flatMap((arm, index) => traces(arm, curves[index], curves[index][x.value])),
      layout: {
        height: 440,
        hovermode: "x unified",
        xaxis: axis(X[x.value], [], { rangemode: "tozero", hoverformat: ",.4~r" }),
        yaxis: axis(Y[y.value], curves.flatMap((curve) => [...curve.mean, ...curve.low])),
      },
      label: `${Y[y.value]} over ${X[x.value]} of ${names}`,
      caption: [
        curves.some(({ seeds }) => seeds > 1)
          ? "The line is the mean over the seeds of an arm, the band reaches from the lowest seed to the highest."
          : curves.length ? "One seed an arm." : ticked.length ? "" : "No arm is ticked.",
        y.value === "loss" && curves.length
          ? "Each arm is shown with the loss it was trained on: where label smoothing differs, losses are not to be compared."
          : "",
        without.length ? `Without a curve so far: ${without.join(", ")}.` : "",
        hidden.length ? `Not shown, for perplexity over other text or other subwords: ${hidden.join(", ")}.` : "",
      ].filter(Boolean).join(" "),
      head: ["arm", X[x.value], "mean", "lowest", "highest"],
      rows: shown.flatMap((arm, a) =>
        curves[a].mean.map((mean, i) => [
          arm.name,
          format(curves[a][x.value][i]),
          ...[mean, curves[a].low[i], curves[a].high[i]].map((value) => format(value, 3)),
        ]),
      ),
    };
  }

  const redraw = figure(section, describe);
})();
