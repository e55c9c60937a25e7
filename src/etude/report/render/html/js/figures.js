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
 * Makes the figure within `section` live.
 *
 * @param describe of a width gives {traces, layout, label, head, rows, caption}: what plotly draws, one sentence for those who do
 *   not see it, the same as a table, and the caption where it is not fixed.
 * @returns what draws it anew once it has been seen.
 */
function figure(section, describe) {
  section.hidden = false;
  const root = section.querySelector("figure");
  const [plot, numbers, caption] = [".plot", "details", "figcaption"].map((part) => root.querySelector(part));
  let seen = false;

  function tell(told) {
    plot.setAttribute("aria-label", told.label);
    if (told.caption) caption.textContent = told.caption;
    const [summary] = numbers.children;
    numbers.replaceChildren(summary, ...(numbers.open ? [scrolling(table(told.head, told.rows), told.label)] : []));
  }

  function draw(width = root.clientWidth) {
    const told = describe(width);
    seen = true;
    tell(told);
    Plotly.react(plot, told.traces, { ...LAYOUT, width, ...told.layout }, CONFIG);
    // The label and the table say it all; letter by letter, the drawing would only be noise to those who listen.
    for (const svg of [...plot.querySelectorAll("svg"), document.getElementById("js-plotly-tester")]) svg.ariaHidden = "true";
  }

  tell(describe(root.clientWidth)); // what it shows can be heard before it is seen
  numbers.addEventListener("toggle", () => tell(describe(root.clientWidth)));
  figures.set(root, { draw, seen: () => seen });
  sight.observe(root);
  return () => seen && draw();
}

/** Axis titles and grid as all figures have them; logarithmic where the values span more than a decade. */
function axis(title, values = [], extra = {}) {
  const finite = values.filter((value) => known(value) && value > 0);
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const shared = { automargin: true, ticks: "outside", ticklen: 4, zeroline: false, title: { text: title, standoff: 8 }, ...extra };
  if (finite.length < 2 || most < 12 * least) return { type: "linear", ...shared };
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++) {
    ticks.push(...(most < 1e4 * least ? [1, 2, 5] : [1]).map((digit) => digit * 10 ** power));
  }
  const ticktext = ticks.map((tick) => tick.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 }));
  return { ...shared, type: "log", tickvals: ticks, ticktext, title: { ...shared.title, text: `${title} (log scale)` } };
}

let resizing;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => figures.forEach(({ draw, seen }) => seen() && draw()), 120);
});
addEventListener("beforeprint", () => figures.forEach(({ draw }, root) => root.closest("[hidden]") || draw(SHEET)));
addEventListener("afterprint", () => figures.forEach(({ draw, seen }) => seen() && draw()));
