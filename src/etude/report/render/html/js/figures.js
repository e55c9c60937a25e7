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

const SHADES = { light: [[0, "#f3f2ed"], [1, "#1f5f99"]], dark: [[0, "#1f2023"], [1, "#83b9e8"]] }; // of heat maps
const DARK = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => ({ dark: true, light: false })[document.documentElement.dataset.theme] ?? DARK.matches;

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

  function tell({ label, caption: text = "", head, rows }) {
    plot.setAttribute("aria-label", label);
    caption.textContent = text;
    numbers.replaceChildren(numbers.firstChild, ...(numbers.open ? [table(label, head, rows)] : []));
  }

  function draw(width = root.clientWidth) {
    const picture = describe(width);
    tell(picture);
    const coloraxis = { ...picture.layout.coloraxis, colorscale: SHADES[isDark() && width !== SHEET ? "dark" : "light"] };
    Plotly.react(plot, placeNames(picture.traces, picture.layout, width), { ...LAYOUT, width, ...picture.layout, coloraxis }, CONFIG);
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

/** Axis titles and grid as all figures have them; logarithmic where the values are above 0 and span more than a decade. */
function axis(title, values = [], extra = {}) {
  const finite = values.filter(isKnown);
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const shared = { automargin: true, ticks: "outside", ticklen: 4, zeroline: false, title: { text: title, standoff: 8 }, ...extra };
  const alone = least === most && least > 0 ? { range: [least / 2, 1.5 * least] } : {}; // of one value, plotly would tell the last digits
  if (finite.length < 2 || least <= 0 || most < 12 * least) return { type: "linear", ...alone, ...shared };
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++) {
    ticks.push(...(most < 1e4 * least ? [1, 2, 5] : [1]).map((digit) => digit * 10 ** power));
  }
  const format = (tick) => tick.toLocaleString("en", { notation: tick < 1e15 ? "compact" : "scientific", maximumSignificantDigits: 3 });
  return { ...shared, type: "log", tickvals: ticks, ticktext: ticks.map(format), title: { ...shared.title, text: `${title} (log scale)` } };
}

const redrawAll = () => figures.forEach(({ redraw }) => redraw());
DARK.addEventListener("change", redrawAll);
new MutationObserver(redrawAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
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

/** The traces of a figure that is `figureWidth` wide, with the names of their points where they do not overlap. */
function placeNames(traces, { xaxis = {}, yaxis = {}, height = 450 }, figureWidth) {
  const named = traces.filter(({ mode }) => mode === "markers+text");
  const points = named.flatMap(({ customdata, x, y, meta = {} }) =>
    customdata.map((name, i) => ({ name, x: x[i], y: y[i], first: meta.first?.includes(name) ?? false })));
  const ends = (trace, bars, values) =>
    trace[bars]?.array.flatMap((up, i) => [trace[values][i] + up, trace[values][i] - trace[bars].arrayminus[i]]) ?? [];
  const onAxis = xaxis.type === "log" ? Math.log : (x) => x;
  const scale = (values, size) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return (value) => (most > least ? (size * (value - least)) / (most - least) : 0);
  };
  const reach = (bars, values, { type, range }) =>
    [...points.map((point) => point[values]), ...named.flatMap((trace) => ends(trace, bars, values)), ...(type === "log" ? [] : range ?? [])];
  const across = scale(reach("error_x", "x", xaxis).map(onAxis), figureWidth - 110); // what the margins leave
  const up = scale(reach("error_y", "y", yaxis), height - 80);
  const box = (x, y, halfWidth, halfHeight) => [x - halfWidth, x + halfWidth, y - halfHeight, y + halfHeight];
  const apart = (a, b) => a[1] < b[0] || b[1] < a[0] || a[3] < b[2] || b[3] < a[2];
  const at = points.map((point) => ({ ...point, left: across(onAxis(point.x)), top: height - 80 - up(point.y) }));
  const taken = at.map(({ left, top }) => box(left, top, 5, 5));
  const positions = {};
  for (const { name, left, top } of at.sort((a, b) => b.first - a.first)) {
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
  return traces.map((trace) => named.includes(trace) ? {
    ...trace,
    text: trace.customdata.map((name) => (name in positions ? name : "")),
    textposition: trace.customdata.map((name) => positions[name] ?? "top center"),
  } : trace);
}
