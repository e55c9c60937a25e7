// Links only to what there is: a section without anything to show stays hidden.

for (const link of document.querySelectorAll("nav a")) {
  link.hidden = document.querySelector(link.hash).hidden;
}

document.documentElement.dataset.ready = ""; // for what automates a browser: everything answers now
