// The page's data, elements made without markup, numbers as a table prints them, and what a reload must not forget.

/** What the page holds packed: its data, and plotly.js. Browsers can unpack since 2023; others show the table alone. */
async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

if (!("DecompressionStream" in window)) {
  document.querySelector(".setting").append(" This browser is too old to unpack the figures.");
  throw new Error("no DecompressionStream");
}
document.head.append(Object.assign(document.createElement("script"), { textContent: await unpack("plotly") }));

const DATA = JSON.parse(await unpack("data")); // as data.py makes it
const ARMS = DATA.arms.filter((arm) => arm.seeds.length);
const METRICS = DATA.metrics; // by name
const BY_NAME = new Map(ARMS.map((arm) => [arm.name, arm]));
const NOTHING = "–";
const LONGEST = Math.max(0, ...ARMS.map(({ seconds }) => seconds ?? 0));
/** The unit in which times of training are told, by the longest of them, and its seconds. */
const [TIME, SECONDS] = [["hours", 3600], ["minutes", 60]].find(([, unit]) => LONGEST >= unit) ?? ["seconds", 1];

/** An element; text stays text, whatever it holds. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat());
  return element;
}

const isKnown = (value) => value !== null && value !== undefined;

/**
 * A number with so many digits behind the point, a real minus, and commas; a dash where there is none. It is rounded as Python
 * does it, so that it is the table's: by the number's exact value, which the short one that a browser takes for it is not.
 */
function format(value, digits = 0) {
  if (!isKnown(value)) return NOTHING;
  if (digits && Math.abs(value) >= 1e9) return value.toExponential(digits).replace("-", "−");
  const form = { minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven" };
  return new Intl.NumberFormat("en", form).format(value.toFixed(20)).replace("-", "−");
}

/** A difference, which always has a sign. */
const formatSigned = (value, digits) => (isKnown(value) ? (value >= 0 ? "+" : "") + format(value, digits) : NOTHING);

const range = (interval, digits) => (interval ? `${format(interval[0], digits)} to ${format(interval[1], digits)}` : NOTHING);

/** What an arm was given beside the baseline, as far as it is known of both. */
function budget(arm) {
  const base = BY_NAME.get(DATA.baseline);
  if (arm === base) return "the same";
  if (arm.budget.length) return arm.budget.join(", ");
  const alike = Object.entries(DATA.budget).filter(([key]) => isKnown(arm[key]) && isKnown(base?.[key])).map(([, told]) => told);
  return alike.length ? `within ${format(100 * DATA.tolerance)} %: ${alike.join(", ")}` : NOTHING;
}

/** A table of cells that scrolls; the first cell of each row is its header. */
function table(label, head, rows) {
  const words = head.map((_, column) => rows.some((row) => /[a-z]/i.test(row[column])));
  const cell = (tag, text, column, scope) => h(tag, { scope, class: words[column] ? "words wrap" : null }, String(text));
  const content = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, head.map((text, column) => cell("th", text, column, "col")))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, column) =>
      column ? cell("td", text, column, null) : h("th", { scope: "row" }, String(text)),
    )))),
  );
  return h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, content);
}

/** What was chosen on this page before it was loaded again; a browser that keeps nothing starts afresh each time. */
const memory = (() => {
  const named = (key) => `${DATA.study}/${key}`;
  const tried = (use) => {
    try {
      return use(window.sessionStorage);
    } catch {
      return null; // it may keep nothing, or have no room
    }
  };
  return { get: (key) => tried((kept) => kept.getItem(named(key))), set: (key, value) => tried((kept) => kept.setItem(named(key), value)) };
})();

/** The metrics to choose from, the headline first, each under its `label` or what of it is `compared`. */
const offeredMetrics = (told = "label") =>
  Object.fromEntries([DATA.headline, ...Object.keys(METRICS)].map((name) => [name, METRICS[name][told]]));

/**
 * A labelled select among the controls of its section, "cost" of "cost-y": offers {value: label}, remembers what is chosen, and
 * calls `changed` when it changes. Called again, it offers anew.
 */
function chooser(id, label, options, preferred, changed) {
  const select = document.getElementById(id) ?? h("select", { id });
  if (!select.isConnected) document.querySelector(`#${id.split("-")[0]} .controls`).append(h("label", {}, `${label} `, select));
  select.replaceChildren(...Object.entries(options).map(([value, told]) => h("option", { value }, told)));
  const remembered = memory.get(id);
  select.value = remembered in options ? remembered : preferred;
  select.onchange = () => {
    memory.set(id, select.value);
    changed();
  };
  return select;
}
