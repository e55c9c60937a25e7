// The page around its figures: links to what there is, and a look for news.

// A section without anything to show stays hidden, and has no link.
for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash).hidden;

// A served page looks again whether the runs have gone on; a page that is a file never asks.
if (Number(document.documentElement.dataset.refresh)) {
  const written = async () => (await fetch(location.href, { method: "HEAD", cache: "no-store" })).headers.get("Last-Modified");
  let first = document.lastModified ? new Date(document.lastModified).toUTCString() : null;
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const now = await written();
      if (now !== (first ??= now)) location.reload();
    } catch {
      // the server is gone; what was seen last stays
    }
  }, 1000 * document.documentElement.dataset.refresh);
}

document.documentElement.dataset.ready = ""; // for what automates a browser: everything answers now
