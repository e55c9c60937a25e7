// Translations of the same sentences by two arms, the largest differences first.

const WHICH = { either: "either way", first: "the first is better", second: "the second is better" };
const SHOWN = 10;
let lastPair = null;
const samplesWhich = chooser("samples-which", "Show", WHICH, "either", () => showSamples(...lastPair));

/** Which words of `said` stand in `wanted` in the same order (longest common subsequence). */
function findShared(said, wanted) {
  const length = said.map(() => new Uint16Array(wanted.length + 1)).concat([new Uint16Array(wanted.length + 1)]);
  for (let i = said.length - 1; i >= 0; i--) {
    for (let j = wanted.length - 1; j >= 0; j--) {
      length[i][j] = said[i] === wanted[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const there = said.map(() => false);
  for (let i = 0, j = 0; i < said.length && j < wanted.length; ) {
    if (said[i] === wanted[j]) [there[i++], j] = [true, j + 1];
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return there;
}

/** The translation, with what the reference does not say underlined. */
function underline(text, reference) {
  const words = text.split(/\s+/);
  const there = findShared(words, reference.split(/\s+/));
  return words.flatMap((word, index) => [there[index] ? word : h("mark", {}, word), " "]);
}

function sample(sentence, one, other) {
  const row = (term, content, score, kind = "") => [
    h("dt", { title: term }, term),
    h("dd", { class: `text ${kind}`, dir: "auto" }, content),
    h("dd", { class: "score" }, score),
  ];
  const said = (arm) => {
    const [text, score] = sentence.said[sentence.by[arm.name]];
    return row(arm.name, underline(text, sentence.reference), format(score, 0));
  };
  return h("li", {}, h("dl", {}, [
    ...row("source", sentence.source, "", "source"),
    ...row("reference", sentence.reference, ""),
    ...said(one),
    ...said(other),
  ]));
}

function showSamples(one, other) {
  lastPair = [one, other];
  const box = document.getElementById("samples");
  const of = (sentence, arm) => sentence.said[sentence.by[arm.name]][1];
  const both = DATA.samples.sentences.filter(({ by }) => one.name in by && other.name in by);
  const wanted = { either: Math.abs, first: (x) => x, second: (x) => -x }[samplesWhich.value];
  const ranked = both
    .map((sentence) => ({ sentence, gap: wanted(of(sentence, one) - of(sentence, other)) }))
    .filter(({ gap }) => gap > 0)
    .sort((x, y) => y.gap - x.gap)
    .slice(0, SHOWN);
  box.hidden = !DATA.samples.sentences.length;
  box.querySelector(".hint").textContent = ranked.length
    ? `The number is sentence BLEU. Underlined is what the reference does not say. From ${format(DATA.samples.sentences.length)} of ` +
      `${format(DATA.samples.of)} sentences, those on which seed ${one.seeds[0]} of ${one.name} and seed ${other.seeds[0]} of ${other.name} differ most.`
    : both.length
      ? "On the sentences kept here, no difference."
      : "The translations of one of the two cannot be compared; the notes below the table say why.";
  box.querySelector("ol").replaceChildren(...ranked.map(({ sentence }) => sample(sentence, one, other)));
}
