// The paper's scores against ours: differences in nats, and whether the order is the same. The numbers themselves are
// of other data.

(() => {
  const Y = offeredMetrics();
  const both = (metric) => ARMS.filter((arm) => isKnown(arm.paper[metric]) && arm.comparable.includes(metric));
  const offered = Object.fromEntries(Object.entries(Y).filter(([metric]) => both(metric).length > 1));
  const views = { ...(DATA.agreement ? { nats: "differences in nats" } : {}), ...offered };
  if (!Object.keys(views).length) return;

  const section = document.getElementById("paper");
  const y = chooser("paper-y", "Show", views, Object.keys(views)[0], () => redraw());

  function correlation(told, letter) {
    if (!told) return "";
    if (!isKnown(told.value)) return `${letter}: ${told.why_not}.`;
    const interval = told.interval ? `, 95 % interval ${range(told.interval, 2)}` : "";
    return `${letter} = ${format(told.value, 2)}${interval}.`;
  }

  function describeOrder(width) {
    const arms = both(y.value);
    const ranks = DATA.ranks[y.value] ?? {};
    const { digits } = METRICS[y.value];
    const points = arms.map((arm) => ({ name: arm.name, x: arm.paper[y.value], y: arm.means[y.value].value, first: arm.name === DATA.baseline }));
    const symbols = points.map(({ first }) => (first ? "diamond" : "circle-open"));
    return {
      traces: [
        {
          ...marks(points, symbols, place(points, width)),
          hovertemplate: `%{customdata}: paper %{x:.${digits}f}, ours %{y:.${digits}f}<extra></extra>`,
        },
      ],
      layout: {
        height: 460,
        xaxis: axis(`${Y[y.value]} in the paper`),
        yaxis: axis(`${Y[y.value]}, ours`),
      },
      label: `${Y[y.value]} of ${arms.length} arms, the paper’s against ours. ${correlation(ranks.spearman, "Spearman’s ρ")}`,
      caption: [
        correlation(ranks.spearman, "Spearman’s ρ"),
        correlation(ranks.kendall, "Kendall’s τ"),
        "Ours is of other data and another size than the paper’s, so the order of the arms is what can be compared.",
      ].join(" "),
      head: ["arm", "paper", "ours"],
      rows: points.map((point) => [point.name, format(point.x, digits), format(point.y, digits)]),
    };
  }

  const redraw = figure(section, (width) => (y.value === "nats" ? describeAgreement : describeOrder)(width));
})();

/** Whether an arm agrees with the paper, in the words of the table: a tie counts where a test shows it. */
function agrees(point) {
  const open = point.agrees && !point.shown && ARMS.some((arm) => arm.seeds.length > 1);
  return open ? "within the margin, not shown" : point.agrees ? "yes" : "no";
}

/** The scatter for a width: points with both intervals, the diagonal, and the margin within which a tie counts as one. */
function describeAgreement(width) {
  const { line, criteria: { margin, large } } = DATA.agreement;
  const points = Object.values(DATA.agreement.points).map((point) => ({ ...point, name: point.arm, x: point.paper, y: point.ours }));
  const xs = points.flatMap(({ paper, rounding }) => [paper, ...rounding]);
  const ys = points.flatMap(({ ours, interval }) => [ours, ...(interval ?? [])]);
  const [across, up] = [extent(xs), extent([...ys, -margin, margin])];
  const corners = [0, 1].map((end) => ({ name: "", x: across[end], y: up[end] })); // the names know the whole figure
  const positions = place([...points, ...corners], width);
  const trace = (which, name, symbol) => {
    const some = points.filter(which);
    return {
      ...marks(some, symbol, positions),
      name,
      error_x: bars(some, "paper", "rounding"),
      error_y: bars(some, "ours", "interval"),
      hovertemplate: `%{customdata}: paper %{x:+.3f}, ours %{y:+.3f} nats<extra></extra>`,
    };
  };
  const behind = { layer: "below", line: { width: 0 } };
  const correlation = isKnown(line.r)
    ? `Pearson’s r = ${format(line.r, 2)}${line.r_interval ? ` (${range(line.r_interval, 2)})` : ""}, slope ` +
      `${format(line.slope, 2)} (${range(line.slope_interval, 2)}), with intervals of 95 %.`
    : "";
  return {
    traces: [
      trace(({ large: counts }) => counts, "sign counts", "circle"),
      trace(({ large: counts }) => !counts, "tie in the paper", "circle-open"),
    ],
    layout: {
      height: 480,
      showlegend: true,
      legend: { orientation: "h", y: 1.1 },
      xaxis: axis(`difference in ln PPL in the paper,${width < 640 ? "<br>" : " "}nats a token`, [], { zeroline: true, range: across }),
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
      point.arm, formatSigned(point.paper, 3), range(point.rounding, 3), formatSigned(point.ours, 3), range(point.interval, 3),
      point.large ? "sign" : "tie", agrees(point),
    ]),
  };
}
