// What quality costs, and which arms give the most of it for their price.

(() => {
  const Y = offeredMetrics();
  const X = {
    flops: "training FLOPs",
    tokens: "target tokens of training",
    parameters: "parameters",
    seconds: `${TIME} of training`,
  };
  const offered = Object.fromEntries(Object.entries(X).filter(([key]) => ARMS.some((arm) => isKnown(arm[key]))));
  if (!Object.keys(offered).length) return;

  const section = document.getElementById("cost");
  const y = chooser("cost-y", "Show", Y, DATA.headline, () => redraw());
  const spread = (key) => new Set(ARMS.map((arm) => arm[key])).size;
  const telling = Object.keys(offered).find((key) => spread(key) > 2) ?? Object.keys(offered)[0];
  const x = chooser("cost-x", "over", offered, telling, () => redraw());

  const isTime = () => x.value === "seconds";
  const cost = (arm) => arm[x.value] / (isTime() ? SECONDS : 1);

  /** The arms that none beats at no higher cost, cheapest first; of equals all. */
  function front(arms) {
    const sign = METRICS[y.value].better === "higher" ? 1 : -1;
    const quality = (arm) => sign * arm.means[y.value].value;
    const beats = (a, b) =>
      cost(a) <= cost(b) && quality(a) >= quality(b) && (cost(a) < cost(b) || quality(a) > quality(b));
    return arms.filter((arm) => !arms.some((other) => beats(other, arm))).sort((a, b) => cost(a) - cost(b));
  }

  function describe(width) {
    const arms = ARMS.filter((arm) => isKnown(arm[x.value]) && arm.comparable.includes(y.value));
    const best = front(arms).map((arm) => arm.name);
    const { digits } = METRICS[y.value];
    const points = arms.map((arm) => {
      const { value, interval } = arm.means[y.value];
      return { name: arm.name, x: cost(arm), y: value, interval, first: best.includes(arm.name) };
    });
    const across = axis(X[x.value], arms.map(cost), { exponentformat: isTime() ? "none" : "SI" });
    const ends = points.flatMap(({ x, interval }) => (interval ?? []).map((y) => ({ name: "", x, y }))); // of the whole figure
    const positions = place([...points, ...ends], width, across.type === "log");
    const trace = (some, symbol) => ({
      ...marks(some, symbol, positions),
      error_y: bars(some, "y", "interval", { color: `${ONE}66` }),
      hovertemplate: `%{customdata}: %{y:.${digits}f}, %{x:,.4~${isTime() ? "r" : "s"}}<extra></extra>`,
    });
    const on = best.map((name) => points.find((point) => point.name === name));
    const steps = {
      x: on.map((point) => point.x),
      y: on.map((point) => point.y),
      mode: "lines", line: { color: ONE, width: 1.5, shape: "hv" }, hoverinfo: "skip",
    };
    return {
      traces: [steps, trace(points.filter(({ first }) => !first), "circle-open"), trace(on, "circle")],
      layout: {
        height: 460,
        xaxis: across,
        yaxis: axis(Y[y.value]),
      },
      label: `${Y[y.value]} over ${X[x.value]}; on the Pareto front: ${best.join(", ")}`,
      caption: "Filled and joined are the arms that no other arm beats at no higher cost: the Pareto front.",
      head: ["arm", X[x.value], Y[y.value], "95 % interval", "on the front"],
      rows: points.toSorted((a, b) => a.x - b.x).map((point) => [
        point.name,
        format(point.x, isTime() ? 3 : 0),
        format(point.y, digits),
        range(point.interval, digits),
        point.first ? "yes" : "",
      ]),
    };
  }

  const redraw = figure(section, describe);
})();
