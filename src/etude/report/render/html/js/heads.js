// What `etude analyze` left: what each head is worth, where it looks, and what else was asked of the model.

if (DATA.figures.analysis) {
  document.getElementById("analysis").hidden = false;
  const change = showMade("analysis", document.getElementById("heads"), ({ arm }) => {
    const { maps, heads } = DATA.maps[arm];
    document.getElementById("heads").hidden = !heads.length; // a model of another kind has none
    showMaps(maps, heads);
    document.getElementById("probes").replaceChildren(
      ...DATA.probes[arm].flatMap(([title, head, rows]) => [h("h3", {}, title), table(title, head, rows)]),
    );
  });
  change();
}
