for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const value = (row) => row.cells[column].dataset.value ?? (column ? "" : row.cells[0].textContent);
      const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = column ? a - b : a.localeCompare(b, undefined, { numeric: true });
        return down ? -order : order;
      });
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
for (const link of document.querySelectorAll("a[href^='#']")) {
  link.addEventListener("click", () => {
    const folded = document.getElementById(link.getAttribute("href").slice(1))?.closest("details");
    if (folded) folded.open = true;
  });
}
