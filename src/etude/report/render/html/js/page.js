// The page around its figures: links to what there is, and a look for news.

// A section without anything to show stays hidden, and has no link.
for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash).hidden;

// What is open and how far the page is scrolled outlive an update, as what is chosen does.
const OPEN = [...document.querySelectorAll("details")];
const SCROLLED = [document.scrollingElement, ...document.querySelectorAll(".scroll")];
const [opened = [], scrolled = []] = JSON.parse(memory.get("view") ?? "[]");
OPEN.forEach((details, index) => (details.open ||= opened.includes(index)));
SCROLLED.forEach((element, index) => element.scrollTo({ left: scrolled[index]?.[0], top: scrolled[index]?.[1], behavior: "instant" }));
const remember = () => memory.set("view", JSON.stringify([
  OPEN.flatMap(({ open }, index) => (open ? [index] : [])),
  SCROLLED.map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]),
]));

// A served page looks again whether the runs have gone on; a page that is a file never asks.
if (Number(document.documentElement.dataset.refresh)) {
  const written = async () => (await fetch(location.href, { method: "HEAD", cache: "no-store" })).headers.get("Last-Modified");
  let first = document.lastModified ? new Date(document.lastModified).toUTCString() : null;
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const now = await written();
      if (now === (first ??= now)) return;
      remember();
      location.reload();
    } catch {
      // the server is gone; what was seen last stays
    }
  }, 1000 * document.documentElement.dataset.refresh);
}

document.documentElement.dataset.ready = ""; // for what automates a browser: everything answers now
