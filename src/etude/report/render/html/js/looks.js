// How an arm looks in every plot: a colour, a dash and a mark, so that none of them stands alone.

// Okabe and Ito's colours, moved to where they stand out from white and from black alike.
const COLOURS = ["#2f7fc1", "#d0591a", "#15926f", "#b0609c", "#a87a00", "#4a90a4", "#c04a56"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const STROKES = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2" };
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down", "pentagon"];

const LOOKS = new Map(
  DATA.arms.filter(({ name }) => name !== DATA.baseline).map(({ name }, n) => [name, {
    colour: COLOURS[n % COLOURS.length],
    dash: DASHES[Math.floor(n / COLOURS.length) % DASHES.length],
    symbol: SYMBOLS[n % SYMBOLS.length],
    width: 2,
  }]),
);
LOOKS.set(DATA.baseline, { colour: "#7c7c78", dash: "solid", symbol: "circle", width: 3 });

/** What plotly gets for an arm's line. */
function look(name, size) {
  const { colour, dash, symbol, width } = LOOKS.get(name);
  return { name, line: { color: colour, dash, width }, marker: { symbol, size, color: colour } };
}

/** The arm's line as it stands in the plot: a legend beside its name. */
function swatch(name) {
  const { colour, dash, width } = LOOKS.get(name);
  const holder = document.createElement("template");
  holder.innerHTML =
    `<svg width="24" height="8" aria-hidden="true"><line x1="0" y1="4" x2="24" y2="4" stroke="${colour}" ` +
    `stroke-width="${width}" stroke-dasharray="${STROKES[dash]}"></line></svg>`;
  return holder.content.firstChild;
}
