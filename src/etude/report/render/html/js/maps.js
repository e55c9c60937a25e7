// Attention maps of chosen sentences, by layer and head.

const KINDS = ["encoder", "decoder", "cross"];

const showMaps = (() => {
  const section = document.getElementById("maps");
  let [maps, heads] = [[], []];
  let redraw = null;
  const CELL = 26; // px
  const MARGIN = 110; // px, at least; plotly leaves out a piece that has no room in it
  const line = (pieces) => pieces.filter((piece) => !piece.startsWith("<")).join("").replaceAll("▁", " ").trim();
  const sentence = ({ source, target }) => line(source) || line(target); // a language model has no source

  /** Pieces as plotly shows them, which takes < for markup: the one that goes on with a word begins with a dot. */
  const shown = (pieces) =>
    pieces.map((piece) => (/^[▁<]/.test(piece) ? piece : `·${piece}`).replace("▁", "").replaceAll("<", "&lt;"));
  const number = (count) => Object.fromEntries(Array.from({ length: count }, (_, index) => [index, index + 1]));
  const chosen = {};

  function describe(width) {
    const map = maps[chosen.sentence.value];
    const kind = chosen.kind.value;
    const weights = map[kind][chosen.layer.value][chosen.head.value];
    const [queries, keys] = [kind === "encoder" ? map.source : map.target, kind === "decoder" ? map.target : map.source];
    const margin = Math.max(MARGIN, 24 + LETTER * Math.max(...[...queries, ...keys].map((piece) => piece.length)));
    const pieces = (side) => ({
      tickvals: side.map((_, index) => index), ticktext: shown(side), showgrid: false, automargin: false, ticks: "",
    });
    return {
      traces: [
        {
          type: "heatmap", z: weights, coloraxis: "coloraxis", xgap: 1, ygap: 1,
          text: shown(queries).map((query) => shown(keys).map((key) => `${query} → ${key}`)),
          hovertemplate: "%{text}: %{z} %<extra></extra>",
        },
      ],
      layout: {
        width: Math.min(width, 1.5 * margin + CELL * keys.length),
        height: margin + CELL * queries.length + 16,
        coloraxis: { cmin: 0, cmax: 100, showscale: false },
        margin: { l: margin, t: margin, r: margin / 2, b: 16 }, // the pieces above lean to the right
        xaxis: axis("", [], { ...pieces(keys), side: "top", tickangle: -60 }),
        yaxis: axis("", [], { ...pieces(queries), autorange: "reversed" }),
      },
      label: `Attention, ${kind}, layer ${+chosen.layer.value + 1}, head ${+chosen.head.value + 1}: ${sentence(map)}`,
      caption: "Each row is a subword that asks; the more colour below a piece, the more of its attention it gets, in per cent.",
      head: ["asks", ...keys],
      rows: queries.map((query, index) => [query, ...weights[index]]),
    };
  }

  /** The head with a map, of some kinds of attention, that the model would miss most; the first where none was removed. */
  function findMissed(kinds) {
    const drawn = ({ attention, layer, head }) => kinds.includes(attention) && maps[0][attention][layer - 1]?.[head - 1];
    const removed = heads.filter((head) => isKnown(head.change) && drawn(head));
    const first = removed[0] ?? { attention: kinds[0], layer: 1, head: 1 };
    return removed.reduce((most, head) => (head.change > most.change ? head : most), first);
  }

  /** Offers the layers and heads of the attention that is chosen. */
  function offerHeads(layers, changed) {
    const { layer, head } = findMissed([chosen.kind.value]);
    chosen.layer = chooser("maps-layer", "Layer", number(layers.length), String(layer - 1), changed);
    chosen.head = chooser("maps-head", "Head", number(layers[0].length), String(head - 1), changed);
  }

  return (given, worth) => {
    heads = worth;
    maps = given.filter((map) => KINDS.some((name) => map[name].length));
    section.hidden = !maps.length;
    if (!maps.length) return;
    const changed = () => redraw();
    const [first] = maps;
    const kinds = Object.fromEntries(KINDS.filter((name) => first[name].length).map((name) => [name, name]));
    chosen.sentence = chooser("maps-sentence", "Sentence", Object.fromEntries(maps.map((map, i) => [i, sentence(map)])), "0", changed);
    chosen.kind = chooser("maps-kind", "Attention", kinds, findMissed(Object.keys(kinds)).attention, () => {
      offerHeads(first[chosen.kind.value], changed);
      redraw();
    });
    offerHeads(first[chosen.kind.value], changed);
    redraw ??= figure(section, describe);
    redraw();
  };
})();
