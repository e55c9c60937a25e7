// Names beside points, where there is room for them; a name without room is still in the hover and in the table.

const PLACES = { "top center": [0, -1], "middle right": [1, 0], "middle left": [-1, 0], "bottom center": [0, 1] };
const [LETTER, LINE, GAP] = [8, 14, 8]; // px: a letter's width, a line's height, a mark's half width and air

/** Where each name goes: {name: a textposition of plotly's}, for points {name, x, y, first: names that go before}. */
function placed(points, figureWidth) {
  const [width, height] = [figureWidth - 110, 380]; // what the margins leave

  const scale = (values, size) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const log = least > 0 && most > 12 * least ? Math.log : (value) => value;
    return (value) => (most > least ? (size * (log(value) - log(least))) / (log(most) - log(least)) : 0);
  };
  const across = scale(points.map(({ x }) => x), width);
  const up = scale(points.map(({ y }) => y), height);
  const box = (x, y, halfWidth, halfHeight) => [x - halfWidth, x + halfWidth, y - halfHeight, y + halfHeight];
  const apart = (a, b) => a[1] < b[0] || b[1] < a[0] || a[3] < b[2] || b[3] < a[2];
  const at = points.map((point) => ({ ...point, left: across(point.x), top: height - up(point.y) }));
  const taken = at.map(({ left, top }) => box(left, top, 5, 5));
  const positions = {};
  for (const { name, left, top } of at.sort((a, b) => (b.first ?? false) - (a.first ?? false))) {
    const half = (name.length * LETTER) / 2;
    for (const [place, [right, down]] of Object.entries(PLACES)) {
      const text = box(left + right * (half + GAP), top + down * (LINE / 2 + GAP), half, LINE / 2);
      if (taken.every((other) => apart(text, other))) {
        taken.push(text);
        positions[name] = place;
        break;
      }
    }
  }
  return positions;
}

/** What a trace of such points needs to show its names. */
function names(arms, positions) {
  return {
    customdata: arms.map(({ name }) => name),
    text: arms.map(({ name }) => (name in positions ? name : "")),
    textposition: arms.map(({ name }) => positions[name] ?? "top center"),
    textfont: { size: 12 },
    mode: "markers+text",
    cliponaxis: false,
  };
}
