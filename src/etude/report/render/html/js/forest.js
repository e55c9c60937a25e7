// The forest plot: each arm's difference to the baseline, with what is known of how sure it is.

(() => {
  const Y = offeredMetrics("compared");
  for (const [name, { log, over }] of Object.entries(METRICS)) if (log) Y[name] += `, nats${over === "tokens" ? " a token" : ""}`;
  const REASONS = 3; // why arms are not tested, at most; the notes below the table say all
  const chance = (p) => (isKnown(p) && p < 0.0001 ? "< 0.0001" : format(p, 4));
  const others = ARMS.filter((arm) => arm.against);
  if (!others.length) return;

  const section = document.getElementById("forest");
  const y = chooser("forest-y", "Show", Y, DATA.headline, () => redraw());

  /** The difference of an arm with its interval, and whether that knows of other seeds. */
  function find(arm) {
    const { test, bootstrap, holm, ...more } = arm.against.differences[y.value];
    const interval = test.interval ?? bootstrap?.interval;
    const [lesser, star] = [Boolean(interval) && !test.interval, isKnown(holm) && holm < DATA.alpha];
    return { arm, ...test, ...more, bootstrap, holm, interval, lesser, star };
  }

  function describe(width) {
    const told = others.filter((arm) => arm.against.differences[y.value]).map(find);
    const metric = METRICS[y.value];
    const digits = metric.log ? 3 : metric.digits + 1;
    const trace = (which, symbol, dash) => {
      const some = told.filter(which);
      return {
        x: some.map((one) => one.difference),
        y: some.map((one) => one.arm.name),
        mode: "markers",
        marker: { symbol, size: 10, color: ONE, line: { width: 1.5, color: ONE } },
        error_x: bars(some, "difference", "interval", dash ? {} : { thickness: 2, width: 5 }),
        customdata: some.map((one) => [range(one.interval, digits), one.star ? ", significant" : ""]),
        hovertemplate: `%{y}: %{x:+.${digits}f} (%{customdata[0]})%{customdata[1]}<extra></extra>`,
      };
    };
    const ends = told.flatMap(({ difference, interval }) => [difference, ...(interval ?? [])]);
    const lesser = told.some((one) => one.lesser);
    const tested = told.some((one) => isKnown(one.holm));
    const untested = [...new Set(told.filter((one) => one.why_not).map((one) => one.why_not))].slice(0, REASONS);
    const elsewhere = told.filter((one) => one.arm.against.reference !== DATA.baseline);
    const reference = elsewhere.length ? "the arm it is held against" : DATA.baseline;
    const over = metric.sentences ? "seeds and sentences" : "seeds";
    const title = `difference of ${Y[y.value]}, arm − ${reference}`;
    const stacked = width < 640; // beside the names, a phone has no room for it in one line
    const better = metric.better === "higher" ? "right" : "left";
    return {
      traces: [
        trace((one) => one.star, "circle", false),
        trace((one) => !one.star && !one.lesser, "circle-open", false),
        trace((one) => one.lesser, "diamond-open", true),
      ],
      layout: {
        height: 90 + 24 * told.length + (stacked ? 36 : 0),
        xaxis: axis(stacked ? title.replaceAll(", ", ",<br>") : title, [], { zeroline: true, zerolinewidth: 2, range: extent([0, ...ends]) }),
        yaxis: axis("", [], {
          type: "category", categoryorder: "array", categoryarray: told.map((one) => one.arm.name).reverse(),
          range: [-0.7, told.length - 0.3], fixedrange: true, dtick: 1,
        }),
      },
      label: `Difference of ${Y[y.value]} to ${reference} for ${told.length} arms, with intervals`,
      caption: [
        `Better is to the ${better}.`,
        elsewhere.length ? `Held against another than ${DATA.baseline}: ${elsewhere.map((one) => `${one.arm.name} against ${one.arm.against.reference}`).join(", ")}.` : "",
        tested ? `A filled mark: significant at ${DATA.alpha} after Holm’s correction over all arms.` : "",
        tested ? `The interval of 95 % is over ${over}.` : "",
        lesser ? "A diamond with a thin line: the interval is over sentences alone and says nothing of other seeds." : "",
        untested.length ? `Not tested: ${untested.join("; ")}.` : "",
      ].join(" "),
      head: ["arm", "difference", "95 % interval", "of", "p after Holm", "p over sentences", "p by exchange", "Hedges’ g", "p of a tie", "budget"],
      rows: told.map(({ arm, difference, interval, lesser: less, holm, star, ...more }) => [
        arm.name,
        formatSigned(difference, digits) + (star ? " *" : ""),
        range(interval, digits),
        interval ? (less ? "sentences" : over) : NOTHING,
        chance(holm),
        chance(more.bootstrap?.p),
        chance(more.randomisation),
        format(more.hedges_g, 2),
        chance(more.tie),
        budget(arm),
      ]),
    };
  }

  const redraw = figure(section, describe);
})();
