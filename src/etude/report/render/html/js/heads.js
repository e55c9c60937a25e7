// What `etude analyze` left: what each head is worth, where it looks, and what else was asked of the model.

const KINDS = { encoder: "encoder", decoder: "decoder", cross: "cross" };
const SHADES = [[0, "#f3f2ed"], [1, "#1f5f99"]];
const analysed = ARMS.filter((arm) => arm.name in DATA.analysis);

(() => {
  if (!analysed.length) return;
  document.getElementById("analysis").hidden = false;
  const WHAT = {
    change: "what its removal adds to the perplexity",
    entropy: "the entropy of its weights, in nats",
    distance: "how far it looks, in subwords",
  };
  const DIGITS = { change: 3, entropy: 2, distance: 2 };
  const PROBES = {
    order: "With the words of the source in random order",
    lengths: "By the length of the source, pairs joined to longer ones included",
    decoding: "Other searches",
    averaging: "The mean of the last checkpoints",
  };
  const names = Object.fromEntries(analysed.map(({ name }) => [name, name]));
  const arm = chooser("analysis-arm", "Arm", names, analysed[0].name, () => change());
  const what = chooser("analysis-what", "Show", WHAT, "change", () => redraw());

  /** What the figures are of. */
  const describeRun = ({ seed, settings }) =>
    `Seed ${seed}${settings ? `, ${format(settings.sentences)} sentences of the test set` : ""}; an interval is over sentences, of this one run, ` +
    `and none is corrected for how many heads there are.`;

  function describe(width) {
    const heads = DATA.analysis[arm.value].heads.filter((head) => isKnown(head[what.value]));
    const kinds = Object.keys(KINDS).filter((kind) => heads.some(({ attention }) => attention === kind));
    const stacked = width < 640;
    const most = (key) => Math.max(0, ...heads.map((head) => head[key]));
    const axes = {};
    const traces = kinds.map((kind, index) => {
      const some = heads.filter(({ attention }) => attention === kind);
      const n = index ? index + 1 : "";
      axes[`xaxis${n}`] = axis(`${KINDS[kind]}: head`, [], { dtick: 1, showgrid: false });
      axes[`yaxis${n}`] = axis(index && !stacked ? "" : "layer", [], { dtick: 1, autorange: "reversed", showgrid: false });
      return {
        type: "heatmap",
        x: some.map(({ head }) => head),
        y: some.map(({ layer }) => layer),
        z: some.map((head) => head[what.value]),
        xaxis: `x${n}`,
        yaxis: `y${n}`,
        coloraxis: "coloraxis",
        texttemplate: most("head") <= 8 ? `%{z:.${DIGITS[what.value]}f}` : "",
        hovertemplate: `${KINDS[kind]}, layer %{y}, head %{x}: %{z:.4f}<extra></extra>`,
        xgap: 1,
        ygap: 1,
      };
    });
    const high = 90 + 34 * most("layer");
    return {
      traces,
      layout: {
        ...axes,
        height: stacked ? high * kinds.length : Math.max(240, high),
        grid: { rows: stacked ? Math.max(1, kinds.length) : 1, columns: stacked ? 1 : Math.max(1, kinds.length), pattern: "independent" },
        coloraxis: { colorscale: SHADES, showscale: false },
      },
      label: `Of each head of ${arm.value}: ${WHAT[what.value]}`,
      caption: `Of each head: ${WHAT[what.value]}. Removal asks whether the model would miss it; entropy and distance say where it looks. ${describeRun(DATA.analysis[arm.value])}`,
      head: ["head", "removal", "95 % interval", "entropy", "distance"],
      rows: heads.map((head) => [
        `${KINDS[head.attention]} ${head.layer}.${head.head}`,
        formatSigned(head.change, 3),
        range(head.interval, 3),
        format(head.entropy, 2),
        format(head.distance, 2),
      ]),
    };
  }

  const UNITS = { bleu: "BLEU", bracket_f1: "bracket F1" };
  const PLACES_OF = { alpha: 1, bleu: 1, bracket_f1: 1 };

  /** A column of the file's numbers, or of its ranges; whole where all of them are. */
  function column(key, values) {
    const digits = values.flat().every((value) => !isKnown(value) || Number.isInteger(value)) ? 0 : (PLACES_OF[key] ?? 2);
    return values.map((value) => (Array.isArray(value) ? range(value, digits) : format(value, digits)));
  }

  /** The answers to one question, a row each, under the names that the file gives them. */
  function probe(question, answers) {
    const rows = [answers].flat().filter(Boolean);
    if (!rows.length) return [];
    const keys = Object.keys(rows[0]);
    const columns = keys.map((key) => column(key, rows.map((row) => row[key])));
    const head = keys.map((key) => UNITS[key] ?? key.replaceAll("_", " "));
    return [h("h3", {}, PROBES[question]), table(PROBES[question], head, rows.map((_, n) => columns.map((told) => told[n])))];
  }

  const redraw = figure(document.getElementById("heads"), describe);

  function change() {
    const found = DATA.analysis[arm.value];
    document.getElementById("heads").hidden = !found.heads.length; // a model of another kind has none
    redraw();
    showMaps(found.maps ?? [], found.heads);
    document.getElementById("probes").replaceChildren(...Object.keys(PROBES).flatMap((question) => probe(question, found[question])));
  }
  change();
})();
