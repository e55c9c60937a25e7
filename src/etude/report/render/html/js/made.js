// Figures that were made before the page was: a chooser for each question, and a figure for each answer.

/**
 * Shows what was made under a name: its choosers in the section of that name, its figure within `section`.
 *
 * @param changed is called with what is chosen, {chooser: value}, whenever that changes.
 */
function showMade(name, section = document.getElementById(name), changed = () => {}) {
  const { choosers, made } = DATA.figures[name];
  const selects = {};
  const chosen = () => Object.fromEntries(Object.entries(selects).map(([key, { value }]) => [key, value]));
  const change = () => {
    redraw();
    changed(chosen());
  };
  for (const [key, [label, options]] of Object.entries(choosers)) {
    selects[key] = chooser(`${name}-${key}`, label, options, Object.keys(options)[0], change);
  }
  const redraw = figure(section, (width) => {
    const picture = made[Object.values(chosen()).join(" ")];
    return width < 640 ? { ...picture, layout: { ...picture.layout, ...picture.narrow } } : picture;
  });
  return () => changed(chosen());
}

for (const { id } of document.querySelectorAll("section[data-made]")) if (DATA.figures[id]) showMade(id);
