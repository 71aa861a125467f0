// Draws every figure from the JSON beside it, and lets tables be sorted by a click on a heading.
for (const place of document.querySelectorAll("div.plot")) {
  const plot = JSON.parse(document.getElementById(place.dataset.plot).textContent);
  Plotly.newPlot(place, plot.data, plot.layout, { responsive: true, displaylogo: false });
}
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.querySelectorAll("th")];
  headings.forEach((heading, column) => {
    heading.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      const body = table.tBodies[0];
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        const [m, n] = [Number(x), Number(y)];
        const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y, "en", { numeric: true }) : m - n;
        return up ? order : -order;
      };
      body.append(...[...body.rows].sort(compare));
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  });
}
