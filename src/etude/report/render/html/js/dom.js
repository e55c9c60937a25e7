// The page's data, elements made without markup, numbers as a table prints them, and what a reload must not forget.

const DATA = JSON.parse(await unpack("data"));
const ARMS = DATA.arms.filter((arm) => arm.seeds.length);
const METRICS = DATA.metrics; // by name
const BY_NAME = new Map(ARMS.map((arm) => [arm.name, arm]));
const NOTHING = "–";

/** An element; text stays text, whatever it holds. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat());
  return element;
}

const known = (value) => value !== null && value !== undefined;

/** A number with so many digits behind the point, a real minus, and commas; a dash where there is none. */
function fixed(value, digits = 0) {
  if (!known(value)) return NOTHING;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}

/** A difference, which always has a sign. */
const signed = (value, digits) => (known(value) ? (value > 0 ? "+" : "") + fixed(value, digits) : NOTHING);

/** What an arm was given beside the baseline, as far as it is known of both. */
function budget(arm) {
  const base = BY_NAME.get(DATA.baseline);
  if (arm === base) return "the same";
  if (arm.budget.length) return arm.budget.join(", ");
  const alike = Object.entries(DATA.budget).filter(([key]) => known(arm[key]) && known(base?.[key])).map(([, told]) => told);
  return alike.length ? `within ${fixed(100 * DATA.tolerance)} %: ${alike.join(", ")}` : NOTHING;
}

const range = (interval, digits) => (interval ? `${fixed(interval[0], digits)} to ${fixed(interval[1], digits)}` : NOTHING);

/** A table of cells; the first cell of each row is its header. */
function table(head, rows) {
  const words = head.map((_, column) => rows.some((row) => /[a-z]/i.test(row[column])));
  const cell = (tag, text, column, scope) => h(tag, { scope, class: words[column] ? "words wrap" : null }, String(text));
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, head.map((text, column) => cell("th", text, column, "col")))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, column) =>
      column ? cell("td", text, column, null) : h("th", { scope: "row" }, String(text)),
    )))),
  );
}

const scrolling = (content, label) => h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, content);

/** What was chosen on this page before it was loaded again; nothing where the browser keeps nothing. */
const memory = {
  get(key) {
    try {
      return sessionStorage.getItem(`${DATA.study}/${key}`);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      sessionStorage.setItem(`${DATA.study}/${key}`, value);
    } catch {
      // a browser that keeps nothing starts afresh each time
    }
  },
};

/** The metrics to choose from, the headline first, each under its `label` or what of it is `compared`. */
const offeredMetrics = (told = "label") =>
  Object.fromEntries([DATA.headline, ...Object.keys(METRICS)].map((name) => [name, METRICS[name][told]]));

/** Fills a select with {value: label}, remembers what is chosen, and calls `changed` when it changes. */
function chooser(id, options, preferred, changed) {
  const select = document.getElementById(id);
  select.replaceChildren(...Object.entries(options).map(([value, label]) => h("option", { value }, label)));
  const remembered = memory.get(id);
  select.value = remembered in options ? remembered : preferred;
  select.onchange = () => {
    memory.set(id, select.value);
    changed();
  };
  return select;
}
