const table = document.querySelector("table.sortable");
const thumbnails = new Map();
if (table) {
  const SIZE = 100;
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const { addresses, slices, rows: more, classes, items: pixels } = data("item-data");
  const shownNumber = (value) => {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (size >= 1e15) return value.toExponential(4);
    if (Number.isInteger(value)) return value.toLocaleString("en");
    if (size < 1e-5) return String(+value.toPrecision(3));
    const text = value.toFixed(size < 0.01 ? 2 - Math.floor(Math.log10(size)) : 4);
    if (size < 0.01) return text.replace(/(\.\d{4}\d*?)0+$/, "$1");
    return ![1, -1].includes(+text) || value === +text ? text : String(value);
  };
  const records = [...body.rows].map((row) => ({
    id: row.id,
    name: row.cells[0].firstChild.textContent.trim(),
    slices: JSON.parse(row.dataset.slices ?? "[]"),
    values: [...row.cells].slice(1).map((cell) => (cell.dataset.value === "" ? null : +cell.dataset.value)),
    row,
  }));
  for (const [place, name, own, ...values] of more) {
    records.push({ id: `item-${place}`, name, slices: own.map((i) => slices[i]), values, row: null });
  }
  const rowOf = (record) => {
    if (!record.row) {
      record.row = made("tr", { id: record.id }, made("th", { scope: "row", textContent: record.name }),
        ...record.values.map((value) => made("td", { textContent: shownNumber(value) })));
    }
    const thumbnail = thumbnails.get(record.id);
    if (thumbnail && !record.row.querySelector("button.thumbnail")) {
      record.row.cells[0].prepend(thumbnail(record.name));
    }
    record.row.querySelector(".of-class")?.remove();
    const own = chosenClass === null ? null : ofClass(record, chosenClass);
    if (own) {
      record.row.cells[0].append(made("span", { className: "hint of-class",
        textContent: `${own[2].toLocaleString("en")} of ${own[1].toLocaleString("en")} pixels wrong` }));
    }
    return record.row;
  };
  let chosenClass = null;

  const tools = document.querySelector(".tools");
  tools.hidden = false;
  const limits = JSON.parse(document.getElementById("verdicts")?.dataset.limits ?? "[]")
    .map((limit) => ({ ...limit, column: addresses.indexOf(limit.address) }))
    .filter((limit) => limit.column >= 0);
  if (limits.length) {
    const select = made("select", { name: "verdict" }, made("option", { value: "", textContent: "any" }),
      ...limits.map((limit, i) => made("option", { value: i, textContent: `fails on its own: ${limit.title}` })));
    tools.querySelector("output").before(made("label", {}, "Verdict ", select));
  }
  if (classes.length) {
    const select = made("select", { name: "class" }, made("option", { value: "", textContent: "any" }),
      ...classes.map(([c, name]) => made("option", { value: c, textContent: name })));
    tools.querySelector("label").after(made("label", {}, "Class ", select));
  }
  const ofClass = (record, c) => (pixels[record.id.slice(5)] ?? []).find((own) => own[0] === c);
  const text = tools.querySelector("output");
  const pages = made("p", { className: "pages", hidden: true });
  const [back, next] = ["Previous", "Next"].map((word) => made("button", { type: "button", textContent: word }));
  const where = made("span");
  pages.append(back, where, next);
  tools.after(pages);
  let found = records;
  let page = 0;
  let order = null;

  const render = () => {
    page = Math.max(0, Math.min(page, Math.ceil(found.length / SIZE) - 1));
    const first = page * SIZE;
    body.replaceChildren(...found.slice(first, first + SIZE).map(rowOf));
    const last = Math.min(first + SIZE, found.length);
    pages.hidden = found.length <= SIZE;
    where.textContent = `${first + 1} to ${last} of ${found.length}`;
    back.disabled = page === 0;
    next.disabled = last === found.length;
  };
  const value = (name) => tools.elements[name]?.value ?? "";
  const filter = () => {
    const [name, slice, score, low, high] = ["name", "slice", "score", "low", "high"].map(value);
    const limit = value("verdict") === "" ? null : limits[value("verdict")];
    const within = (number, least, most) => number !== null && number >= least && number <= most;
    chosenClass = value("class") === "" ? null : +value("class");
    found = records.filter((record) => record.name.toLowerCase().includes(name.toLowerCase())
      && (chosenClass === null || ofClass(record, chosenClass))
      && (slice === "" || record.slices.includes(slice))
      && (score === "" || (low === "" && high === "")
        || within(record.values[score - 1], low === "" ? -Infinity : +low, high === "" ? Infinity : +high))
      && (!limit || (record.values[limit.column] !== null
        && !within(record.values[limit.column], limit.min ?? -Infinity, limit.max ?? Infinity))));
    if (order) {
      const key = (record) => (order.column ? record.values[order.column - 1] : record.name);
      found.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const sign = order.column ? x - y : x.localeCompare(y, undefined, { numeric: true });
        return order.down ? -sign : sign;
      });
    }
    if (!order && chosenClass !== null) {
      found.sort((a, b) => ofClass(b, chosenClass)[2] - ofClass(a, chosenClass)[2]);
    }
    text.value = `${found.length} of ${records.length} shown`;
  };
  const again = () => { filter(); page = 0; render(); };
  tools.addEventListener("input", again);
  tools.addEventListener("submit", (event) => event.preventDefault());
  back.addEventListener("click", () => { page -= 1; render(); });
  next.addEventListener("click", () => { page += 1; render(); });
  heads.forEach((head, column) => {
    const button = made("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      order = { column, down };
      again();
    });
  });
  byHash.push((id) => {
    body.querySelector(".chosen")?.classList.remove("chosen");
    const record = id.startsWith("item-") && records.find((own) => own.id === id);
    if (!record) return;
    if (!found.includes(record)) { tools.reset(); filter(); }
    page = Math.floor(found.indexOf(record) / SIZE);
    render();
    record.row.classList.add("chosen");
    record.row.scrollIntoView({ block: "center" });
  });
  addEventListener("thumbnails", render);
  render();
}
