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

/**
 * A labelled select among the controls of its section, "cost" of "cost-y": offers {value: label}, remembers what is chosen, and
 * calls `changed` when it changes. Called again, it offers anew.
 */
function chooser(id, label, options, preferred, changed) {
  const select = document.getElementById(id) ?? h("select", { id });
  if (!select.isConnected) document.querySelector(`#${id.split("-")[0]} .controls`).append(h("label", {}, `${label} `, select));
  select.replaceChildren(...Object.entries(options).map(([value, label]) => h("option", { value }, label)));
  const remembered = memory.get(id);
  select.value = remembered in options ? remembered : preferred;
  select.onchange = () => {
    memory.set(id, select.value);
    changed();
  };
  return select;
}
