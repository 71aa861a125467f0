// Draws every figure from the JSON beside it, in the reader's colour scheme, and lets tables be sorted
// by a click on a heading.
const dark = matchMedia("(prefers-color-scheme: dark)");
// What figures are drawn in for light pages, and its counterpart on dark ones.
const darker = {
  "#ffffff": "#15181c", "#e0e0e0": "#383d44", "#bbbbbb": "#666c75", "#000000": "#e6e6e6",
  "#0072B2": "#56B4E9", "#56B4E9": "#A6D8F5", "#8C6D31": "#C8A15A",
};
const drawAll = () => {
  for (const place of document.querySelectorAll("div.plot")) {
    let text = document.getElementById(place.dataset.plot).textContent;
    if (dark.matches) text = text.replace(/"(#[0-9a-fA-F]{6})"/g, (all, colour) => `"${darker[colour] ?? colour}"`);
    const plot = JSON.parse(text);
    const font = { ...plot.layout.font, color: dark.matches ? "#e6e6e6" : "#1a1a1a" };
    const layout = { ...plot.layout, font, paper_bgcolor: "rgba(0,0,0,0)" };
    Plotly.react(place, plot.data, layout, { responsive: true, displaylogo: false });
  }
};
drawAll();
dark.addEventListener("change", drawAll);
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
