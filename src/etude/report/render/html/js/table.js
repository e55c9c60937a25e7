// The theme, and the table whose headers sort: they work even where a figure fails.

{
  const button = document.getElementById("theme");
  const next = { system: "light", light: "dark", dark: "system" };
  const turn = (to) => {
    const theme = to in next ? to : "system";
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    button.onclick = () => turn(next[theme]);
    memory.set("theme", theme);
  };
  turn(memory.get("theme"));
}

{
  const study = document.getElementById("study");
  const body = study.tBodies[0];
  const headers = [...study.tHead.rows[0].cells];
  const order = [...body.rows];

  const value = (row, column) => {
    const value = row.cells[column].dataset.value;
    return value === undefined ? null : headers[column].dataset.words ? value : Number(value);
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);

  /** direction: "ascending", "descending" or "none", the order of the study; empty cells stay last. */
  const sort = (column, direction) => {
    headers.forEach((header, index) => header.setAttribute("aria-sort", index === column ? direction : "none"));
    study.classList.toggle("sorted", direction !== "none");
    const sign = direction === "descending" ? -1 : 1;
    const sorted = order.toSorted((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      return a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b);
    });
    body.replaceChildren(...(direction === "none" ? order : sorted));
    memory.set("sort", `${column} ${direction}`);
  };

  const next = { none: "ascending", ascending: "descending", descending: "none" };
  headers.forEach((header, column) => {
    header.querySelector("button").onclick = () => sort(column, next[header.getAttribute("aria-sort")]);
  });
  const [column, direction] = (memory.get("sort") ?? "").split(" ");
  if (direction in next && headers[column]) sort(Number(column), direction);
}
