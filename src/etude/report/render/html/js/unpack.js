// What the page holds packed: its data, and plotly.js. Browsers can unpack since 2023; others show the table alone.

async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

if (!("DecompressionStream" in window)) {
  document.querySelector(".setting").append(" This browser is too old to unpack the figures.");
  throw new Error("no DecompressionStream");
}
document.head.append(Object.assign(document.createElement("script"), { textContent: await unpack("plotly") }));
