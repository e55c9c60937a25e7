// What quality costs, and which arms give the most of it for their price.

(() => {
  const Y = offeredMetrics();
  const X = {
    flops: "training FLOPs",
    tokens: "target tokens of training",
    parameters: "parameters",
    hours: "hours of training",
  };
  const offered = Object.fromEntries(Object.entries(X).filter(([key]) => ARMS.some((arm) => known(arm[key]))));
  if (!Object.keys(offered).length) return;

  const section = document.getElementById("cost");
  const y = chooser("cost-y", Y, DATA.headline, () => redraw());
  const spread = (key) => new Set(ARMS.map((arm) => arm[key])).size;
  const telling = Object.keys(offered).find((key) => spread(key) > 2) ?? Object.keys(offered)[0];
  const x = chooser("cost-x", offered, telling, () => redraw());

  /** The arms that none beats at no higher cost, cheapest first. */
  function front(arms) {
    const sign = METRICS[y.value].better === "higher" ? 1 : -1;
    const better = (arm) => sign * arm.means[y.value].mean;
    const sorted = [...arms].sort((a, b) => a[x.value] - b[x.value] || better(b) - better(a));
    return sorted.filter((arm, index) => sorted.slice(0, index).every((cheaper) => better(cheaper) < better(arm)));
  }

  function describe(width) {
    const arms = ARMS.filter((arm) => known(arm[x.value]) && arm.comparable.includes(y.value));
    const best = front(arms);
    const { digits } = METRICS[y.value];
    const mean = (arm) => arm.means[y.value];
    const reach = (arm, end) => (mean(arm).interval ? Math.abs(mean(arm).interval[end] - mean(arm).mean) : 0);
    const points = arms.map((arm) => ({ name: arm.name, x: arm[x.value], y: mean(arm).mean, first: best.includes(arm) }));
    const positions = placed(points, width);
    const marks = (some, symbol) => ({
      x: some.map((arm) => arm[x.value]),
      y: some.map((arm) => mean(arm).mean),
      ...names(some, positions),
      marker: { symbol, size: 9, color: ONE, line: { width: 1.5, color: ONE } },
      error_y: {
        type: "data", symmetric: false, array: some.map((arm) => reach(arm, 1)), arrayminus: some.map((arm) => reach(arm, 0)),
        color: `${ONE}66`, thickness: 1, width: 0,
      },
      hovertemplate: `%{customdata}: %{y:.${digits}f}, %{x:,.4~s}<extra></extra>`,
    });
    const steps = {
      x: best.map((arm) => arm[x.value]),
      y: best.map((arm) => mean(arm).mean),
      mode: "lines", line: { color: ONE, width: 1.5, shape: "hv" }, hoverinfo: "skip",
    };
    return {
      traces: [steps, marks(arms.filter((arm) => !best.includes(arm)), "circle-open"), marks(best, "circle")],
      layout: {
        height: 460,
        hovermode: "closest",
        xaxis: axis(X[x.value], arms.map((arm) => arm[x.value]), { exponentformat: "SI" }),
        yaxis: axis(Y[y.value]),
      },
      label: `${Y[y.value]} over ${X[x.value]}; on the Pareto front: ${best.map((arm) => arm.name).join(", ")}`,
      head: ["arm", X[x.value], Y[y.value], "95 % interval", "on the front"],
      rows: [...arms].sort((a, b) => a[x.value] - b[x.value]).map((arm) => [
        arm.name,
        fixed(arm[x.value], x.value === "hours" ? 3 : 0),
        fixed(mean(arm).mean, digits),
        range(mean(arm).interval, digits),
        best.includes(arm) ? "yes" : "",
      ]),
    };
  }

  const redraw = figure(section, describe);
})();
