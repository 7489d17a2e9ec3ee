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
for (const copies of document.querySelectorAll(".copies")) copies.hidden = false;
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    const area = document.createElement("textarea");
    area.value = button.dataset.copy;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const label = button.firstChild;
  const text = label.data;
  label.data = "Copied";
  setTimeout(() => { label.data = text; }, 1500);
});
const tools = document.querySelector(".tools");
if (tools) {
  tools.hidden = false;
  const rows = [...document.querySelector("#items tbody").rows];
  const filter = () => {
    const [name, slice, score] = ["name", "slice", "score"].map((n) => tools.elements[n]?.value ?? "");
    const [low, high] = ["low", "high"].map((n) => tools.elements[n].value);
    let shown = 0;
    for (const row of rows) {
      const value = score === "" ? "" : row.cells[score].dataset.value;
      const fits = row.cells[0].textContent.toLowerCase().includes(name.toLowerCase())
        && (slice === "" || JSON.parse(row.dataset.slices ?? "[]").includes(slice))
        && (score === "" || ((low === "" || (value !== "" && +value >= +low))
          && (high === "" || (value !== "" && +value <= +high))));
      row.hidden = !fits;
      shown += fits;
    }
    tools.querySelector("output").value = `${shown} of ${rows.length} shown`;
  };
  tools.addEventListener("input", filter);
  tools.addEventListener("submit", (event) => event.preventDefault());
}
const exhibits = [...document.querySelectorAll(".exhibit")].map((own) => [...own.querySelectorAll("img")]);
if (exhibits.length) {
  const box = document.createElement("dialog");
  box.className = "lightbox";
  box.setAttribute("aria-label", "Picture");
  const large = document.createElement("img");
  const text = document.createElement("p");
  text.setAttribute("aria-live", "polite");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => box.close());
  box.append(large, text, close);
  document.body.append(box);
  let item = 0;
  let picture = 0;
  const show = () => {
    const own = exhibits[item];
    const image = own[Math.min(picture, own.length - 1)];
    const article = image.closest(".exhibit");
    large.src = image.src;
    large.alt = image.alt;
    text.textContent = `${article.querySelector("h3").textContent}, ${article.querySelector(".why").textContent}: ${image.nextElementSibling?.textContent ?? image.alt}`;
  };
  const turn = (n, step, count) => (n + step + count) % count;
  exhibits.forEach((own, i) => own.forEach((image, k) => {
    const open = () => { [item, picture] = [i, k]; show(); box.showModal(); };
    image.tabIndex = 0;
    image.setAttribute("role", "button");
    image.setAttribute("aria-label", `Enlarge: ${image.alt}`);
    image.addEventListener("click", open);
    image.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); }
    });
  }));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const other = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step && !other) return;
    event.preventDefault();
    if (step) item = turn(item, step, exhibits.length);
    if (other) picture = turn(picture, other, exhibits[item].length);
    show();
  });
}
