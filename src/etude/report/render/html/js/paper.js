// The paper's scores against ours: differences in nats, and whether the order is the same. The numbers themselves are
// of other data.

(() => {
  const Y = offeredMetrics();
  const both = (metric) => ARMS.filter((arm) => known(arm.paper[metric]) && arm.comparable.includes(metric));
  const offered = Object.fromEntries(Object.entries(Y).filter(([metric]) => both(metric).length > 1));
  const views = { ...(DATA.agreement ? { nats: "differences in nats" } : {}), ...offered };
  if (!Object.keys(views).length) return;

  const section = document.getElementById("paper");
  const y = chooser("paper-y", views, Object.keys(views)[0], () => redraw());

  function correlation(told, letter) {
    if (!told) return "";
    if (!known(told.value)) return `${letter}: ${told.why}.`;
    const interval = told.interval ? `, 95 % interval ${range(told.interval, 2)}` : "";
    return `${letter} = ${fixed(told.value, 2)}${interval}.`;
  }

  function describeOrder(width) {
    const arms = both(y.value);
    const ranks = DATA.ranks[y.value] ?? {};
    const { digits } = METRICS[y.value];
    const base = (arm) => arm.name === DATA.baseline;
    const points = arms.map((arm) => ({ name: arm.name, x: arm.paper[y.value], y: arm.means[y.value].mean, first: base(arm) }));
    const positions = placed(points, width);
    return {
      traces: [
        {
          x: arms.map((arm) => arm.paper[y.value]),
          y: arms.map((arm) => arm.means[y.value].mean),
          ...names(arms, positions),
          marker: {
            symbol: arms.map((arm) => (base(arm) ? "diamond" : "circle-open")), size: 9, color: ONE,
            line: { width: 1.5, color: ONE },
          },
          hovertemplate: `%{customdata}: paper %{x:.${digits}f}, ours %{y:.${digits}f}<extra></extra>`,
        },
      ],
      layout: {
        height: 460,
        hovermode: "closest",
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
      rows: arms.map((arm) => [arm.name, fixed(arm.paper[y.value], digits), fixed(arm.means[y.value].mean, digits)]),
    };
  }

  const redraw = figure(section, (width) => (y.value === "nats" ? describeAgreement : describeOrder)(width));
})();
