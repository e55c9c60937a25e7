// The study's table: headers that sort.

(() => {
  const study = document.getElementById("study");
  const body = study.tBodies[0];
  const headers = [...study.tHead.rows[0].cells];
  const order = [...body.rows];

  function value(row, column) {
    const told = row.cells[column].dataset.value;
    return told === undefined ? null : headers[column].dataset.words ? told : Number(told);
  }

  function compare(a, b) {
    return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  }

  /** direction: "ascending", "descending" or "none", the order of the study; empty cells stay last. */
  function sort(column, direction) {
    headers.forEach((header, index) => header.setAttribute("aria-sort", index === column ? direction : "none"));
    study.classList.toggle("sorted", direction !== "none");
    const sign = direction === "descending" ? -1 : 1;
    const sorted = [...order];
    if (direction !== "none") {
      sorted.sort((one, other) => {
        const [a, b] = [value(one, column), value(other, column)];
        return a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b);
      });
    }
    body.replaceChildren(...sorted);
    memory.set("sort", `${column} ${direction}`);
  }

  const next = { none: "ascending", ascending: "descending", descending: "none" };
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => sort(column, next[header.getAttribute("aria-sort")]));
  });
  const [column, direction] = (memory.get("sort") ?? "").split(" ");
  if (direction in next && headers[column]) sort(Number(column), direction);
})();
