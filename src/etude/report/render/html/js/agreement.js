// Ours against the paper in nats: what each arm costs or gains against the baseline, where sizes can be compared.

/** The scatter for a width: points with both intervals, the diagonal, and the margin within which a tie counts as one. */
function describeAgreement(width) {
  const { points, line, margin, large } = DATA.agreement;
  const xs = points.flatMap(({ paper, rounding }) => [paper, ...rounding]);
  const ys = points.flatMap(({ ours, interval }) => [ours, ...(interval ?? [])]);
  const reached = (values) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return [least - 0.08 * (most - least), most + 0.08 * (most - least)];
  };
  const [across, up] = [reached(xs), reached([...ys, -margin, margin])];
  const corners = [0, 1].map((end) => ({ name: "", x: across[end], y: up[end] })); // the names know the whole figure
  const positions = placed([...points.map(({ arm, paper, ours }) => ({ name: arm, x: paper, y: ours })), ...corners], width);
  const reach = (point, interval, middle, end) => (interval ? Math.abs(interval[end] - point[middle]) : 0);
  const bars = (some, interval, middle, color) => ({
    type: "data", symmetric: false, color, thickness: 1, width: 0,
    array: some.map((point) => reach(point, point[interval], middle, 1)),
    arrayminus: some.map((point) => reach(point, point[interval], middle, 0)),
  });
  const trace = (which, name, symbol) => {
    const some = points.filter(which);
    return {
      x: some.map(({ paper }) => paper),
      y: some.map(({ ours }) => ours),
      name,
      ...names(some.map(({ arm }) => ({ name: arm })), positions),
      marker: { symbol, size: 9, color: ONE, line: { width: 1.5, color: ONE } },
      error_x: bars(some, "rounding", "paper", ONE),
      error_y: bars(some, "interval", "ours", ONE),
      hovertemplate: `%{customdata}: paper %{x:+.3f}, ours %{y:+.3f} nats<extra></extra>`,
    };
  };
  const behind = { layer: "below", line: { width: 0 } };
  const correlation = known(line.r)
    ? `Pearson’s r = ${fixed(line.r, 2)}${line.r_interval ? ` (${range(line.r_interval, 2)})` : ""}, slope ` +
      `${fixed(line.slope, 2)} (${range(line.slope_interval, 2)}), with intervals of 95 %.`
    : "";
  return {
    traces: [
      trace(({ large: counts }) => counts, "sign counts", "circle"),
      trace(({ large: counts }) => !counts, "tie in the paper", "circle-open"),
    ],
    layout: {
      height: 480,
      hovermode: "closest",
      showlegend: true,
      legend: { orientation: "h", y: 1.1 },
      xaxis: axis("difference in ln PPL in the paper, nats a token", [], { zeroline: true, range: across }),
      yaxis: axis("ours", [], { zeroline: true, range: up }),
      shapes: [
        { type: "rect", xref: "paper", x0: 0, x1: 1, y0: -margin, y1: margin, fillcolor: "rgba(128,128,128,0.16)", ...behind },
        { type: "line", x0: across[0], y0: across[0], x1: across[1], y1: across[1], layer: "below", line: { width: 1, dash: "dash", color: ONE } },
      ],
    },
    label: `Difference from ${DATA.baseline} in ln PPL of ${points.length} arms, the paper’s against ours. ${correlation}`,
    caption: [
      correlation,
      "On the dashed diagonal an arm costs as much here as in the paper.",
      `Shaded: within ${margin} nats of the baseline, where a tie counts as one; open marks are ties in the paper`,
      `(within ${large}). Bars: the rounding of the paper’s two digits; of ours, 95 % over seeds where there are several.`,
    ].join(" "),
    head: ["arm", "paper", "before rounding", "ours", "95 % interval", "counts as", "agrees"],
    rows: points.map((point) => [
      point.arm, signed(point.paper, 3), range(point.rounding, 3), signed(point.ours, 3), range(point.interval, 3),
      point.large ? "sign" : "tie", point.agrees ? "yes" : "no",
    ]),
  };
}
