// Figures: drawn when they come into sight, fitted to the screen or the sheet, each with the same numbers as a table.

const TOUCH = matchMedia("(pointer: coarse)").matches;
const LAYOUT = {
  font: { family: "system-ui, sans-serif", size: 13 },
  paper_bgcolor: "rgba(0,0,0,0)",
  plot_bgcolor: "rgba(0,0,0,0)",
  margin: { l: 56, r: 16, t: 28, b: 48 },
  showlegend: false,
  dragmode: TOUCH ? false : "zoom", // a finger that scrolls the page must not zoom a plot
  hoverlabel: { bgcolor: "#26272a", bordercolor: "#8b8982", font: { color: "#ffffff" }, align: "left" },
};
const CONFIG = {
  displaylogo: false,
  displayModeBar: !TOUCH,
  modeBarButtons: [["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"], ["toImage"]],
};
const SHEET = 660; // px: what an upright page of A4 or Letter leaves beside its margins

const figures = new Map(); // the figure's element -> what redraws it
const sight = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      figures.get(target).draw();
    }
  },
  { rootMargin: "200px" },
);

/**
 * Fills the figure within `section`.
 *
 * @param describe of a width gives {traces, layout, label, head, rows, caption}: what plotly draws, one sentence for those who do
 *   not see it, the same as a table, and what stands below.
 * @returns what draws it anew once it has been seen.
 */
function figure(section, describe) {
  section.hidden = false;
  const root = section.querySelector("figure");
  const [plot, caption] = [h("div", { class: "plot", role: "group" }), h("figcaption")];
  const numbers = h("details", { class: "numbers" }, h("summary", {}, "The same as a table"));
  root.append(plot, caption, numbers);

  function tell({ label, caption: told = "", head, rows }) {
    plot.setAttribute("aria-label", label);
    caption.textContent = told;
    numbers.replaceChildren(numbers.firstChild, ...(numbers.open ? [table(label, head, rows)] : []));
  }

  function draw(width = root.clientWidth) {
    const told = describe(width);
    tell(told);
    Plotly.react(plot, told.traces, { ...LAYOUT, width, ...told.layout }, CONFIG);
    // The label and the table say it all; letter by letter, the drawing would only be noise to those who listen.
    for (const svg of [...plot.querySelectorAll("svg"), document.getElementById("js-plotly-tester")]) svg.ariaHidden = "true";
  }

  tell(describe(root.clientWidth)); // what it shows can be heard before it is seen
  numbers.addEventListener("toggle", () => tell(describe(root.clientWidth)));
  const redraw = () => plot.data && draw();
  figures.set(root, { draw, redraw });
  sight.observe(root);
  return redraw;
}

/** Axis titles and grid as all figures have them; logarithmic where the values span more than a decade. */
function axis(title, values = [], extra = {}) {
  const finite = values.filter((value) => isKnown(value) && value > 0);
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const shared = { automargin: true, ticks: "outside", ticklen: 4, zeroline: false, title: { text: title, standoff: 8 }, ...extra };
  const alone = least === most ? { range: [least / 2, 1.5 * least] } : {}; // of one value, plotly would tell the last digits
  if (finite.length < 2 || most < 12 * least) return { type: "linear", ...alone, ...shared };
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++) {
    ticks.push(...(most < 1e4 * least ? [1, 2, 5] : [1]).map((digit) => digit * 10 ** power));
  }
  const told = (tick) => tick.toLocaleString("en", { notation: tick < 1e15 ? "compact" : "scientific", maximumSignificantDigits: 3 });
  return { ...shared, type: "log", tickvals: ticks, ticktext: ticks.map(told), title: { ...shared.title, text: `${title} (log scale)` } };
}

/** The range of an axis that leaves air beside the least and the most of values. */
function extent(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const air = 0.08 * (most - least) || 1;
  return [least - air, most + air];
}

const redrawAll = () => figures.forEach(({ redraw }) => redraw());
let resizing;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(redrawAll, 120);
});
addEventListener("beforeprint", () => figures.forEach(({ draw }, root) => root.closest("[hidden]") || draw(SHEET)));
addEventListener("afterprint", redrawAll);

// Names beside points, where there is room for them; a name without room is still in the hover and in the table.
const PLACES = { "top center": [0, -1], "middle right": [1, 0], "middle left": [-1, 0], "bottom center": [0, 1] };
const [LETTER, LINE, GAP] = [8, 14, 8]; // px: a letter's width, a line's height, a mark's half width and air

/**
 * Where each name goes: {name: a textposition of plotly's}, for points {name, x, y, first: names that go before}. `log` says
 * whether the axis of x is logarithmic; that of y is linear.
 */
function place(points, figureWidth, log = false) {
  const [width, height] = [figureWidth - 110, 380]; // what the margins leave

  const scale = (values, size) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return (value) => (most > least ? (size * (value - least)) / (most - least) : 0);
  };
  const onAxis = log ? Math.log : (x) => x;
  const across = scale(points.map(({ x }) => onAxis(x)), width);
  const up = scale(points.map(({ y }) => y), height);
  const box = (x, y, halfWidth, halfHeight) => [x - halfWidth, x + halfWidth, y - halfHeight, y + halfHeight];
  const apart = (a, b) => a[1] < b[0] || b[1] < a[0] || a[3] < b[2] || b[3] < a[2];
  const at = points.map((point) => ({ ...point, left: across(onAxis(point.x)), top: height - up(point.y) }));
  const taken = at.map(({ left, top }) => box(left, top, 5, 5));
  const positions = {};
  for (const { name, left, top } of at.sort((a, b) => (b.first ?? false) - (a.first ?? false))) {
    const half = (name.length * LETTER) / 2;
    for (const [place, [right, down]] of Object.entries(PLACES)) {
      const text = box(left + right * (half + GAP), top + down * (LINE / 2 + GAP), half, LINE / 2);
      if (taken.every((other) => apart(text, other))) {
        taken.push(text);
        positions[name] = place;
        break;
      }
    }
  }
  return positions;
}

/** Marks with their names, of points {name, x, y}. */
const marks = (points, symbol, positions) => ({
  x: points.map(({ x }) => x),
  y: points.map(({ y }) => y),
  customdata: points.map(({ name }) => name),
  text: points.map(({ name }) => (name in positions ? name : "")),
  textposition: points.map(({ name }) => positions[name] ?? "top center"),
  textfont: { size: 12 },
  mode: "markers+text",
  cliponaxis: false,
  marker: { symbol, size: 9, color: ONE, line: { width: 1.5, color: ONE } },
});

/** Error bars from a value of each point to the ends of its interval; none, which NaN is to plotly, where it has none. */
const bars = (points, value, interval, look = {}) => {
  const reach = (end) => points.map((point) => (point[interval] ? Math.abs(point[interval][end] - point[value]) : NaN));
  return { type: "data", symmetric: false, array: reach(1), arrayminus: reach(0), color: ONE, thickness: 1, width: 0, ...look };
};
