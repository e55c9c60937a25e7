// A served page looks again whether the runs have gone on; a page that is a file never asks.

(() => {
  const seconds = Number(document.documentElement.dataset.refresh);
  if (!seconds) return;
  const written = async () => (await fetch(location.href, { method: "HEAD", cache: "no-store" })).headers.get("Last-Modified");
  let first = null;
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const now = await written();
      if (now !== (first ??= now)) location.reload();
    } catch {
      // the server is gone; what was seen last stays
    }
  }, 1000 * seconds);
})();
