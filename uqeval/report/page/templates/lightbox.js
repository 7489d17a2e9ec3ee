if (exhibits.length) {
  const known = data("picture-data");
  const ramp = new Map(known.ramp.map((colour, i) => [`#${colour}`, i / (known.ramp.length - 1)]));
  const numbers = (text) => (text ? text.split(" ").map(Number) : null);
  const items = exhibits.map(({ id, title, pictures }) => ({
    id,
    title,
    pictures: pictures.map((own) => ({
      ...own,
      name: own.group ? `${own.group}: ${own.title}` : own.title,
      meanings: known.meanings[own.meanings] ?? null,
      scale: numbers(own.scale),
      shape: numbers(own.shape),
      image: null,
      pixels: null,
    })),
  }));

  const base = made("img");
  const over = made("img", { alt: "", className: "over" });
  const cross = made("span", { className: "cross", hidden: true });
  const stage = made("div", { className: "stage", tabIndex: 0 }, base, over, cross);
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", "Picture; Shift and an arrow key move the cursor");
  const text = made("p");
  text.setAttribute("aria-live", "polite");
  const [below, above] = ["below", "above"].map((name) => made("select", { name }));
  const slider = made("input", { type: "range", name: "overlay", min: 0, max: 100, value: 0 });
  const [before, after, close] = ["Previous item", "Next item", "Close"]
    .map((word) => made("button", { type: "button", textContent: word }));
  const link = made("a", { textContent: table ? "Scores of the item" : "To the item" });
  const values = made("dl", { className: "values" });
  const box = made("dialog", { className: "lightbox" }, text,
    made("div", { className: "controls" }, made("label", {}, "Picture ", below),
      made("label", {}, "Overlay ", above), made("label", {}, "0 % ", slider, " 100 %")),
    made("div", { className: "view" }, stage, values),
    made("div", { className: "controls" }, before, after, link, close));
  box.setAttribute("aria-label", "Picture");
  document.body.append(box);

  let item = 0;
  let picture = 0;
  let overlay = 0;
  let cursor = null;
  const errorsOf = (own) => Math.max(0, own.pictures.findIndex((one) =>
    /^(errors|error|changed)\b/.test(one.title)));
  const turn = (n, count) => (n + count) % count;
  const options = (select, names, chosen) => {
    select.replaceChildren(...names.map((name, i) => made("option", { value: i, textContent: name })));
    select.value = chosen;
  };
  const load = (own) => {
    if (own.image) return;
    own.image = made("img", { src: own.source });
    own.image.addEventListener("load", () => { if (box.open) point(); });
  };
  const show = () => {
    const { id, title, pictures } = items[item];
    picture = Math.min(picture, pictures.length - 1);
    overlay = Math.min(overlay, pictures.length - 1);
    const own = pictures[picture];
    pictures.forEach(load);
    base.src = own.source;
    base.alt = own.alt;
    over.src = pictures[overlay].source;
    over.style.opacity = slider.value / 100;
    text.textContent = `${title}: ${own.name}`;
    options(below, pictures.map((one) => one.name), picture);
    options(above, pictures.map((one) => one.name), overlay);
    link.href = `#${table ? id : `gallery-${id}`}`;
    if (box.open) history.replaceState(null, "", `#view-${id.slice(5)}`);
    point();
  };
  const colourAt = (own, [x, y]) => {
    if (!own.pixels) {
      const { naturalWidth: width, naturalHeight: height, complete } = own.image;
      if (!complete || !width) return null;
      const canvas = made("canvas", { width, height });
      const drawing = canvas.getContext("2d", { willReadFrequently: true });
      drawing.drawImage(own.image, 0, 0);
      own.pixels = drawing.getImageData(0, 0, width, height);
    }
    const { width, height, data: bytes } = own.pixels;
    const at = 4 * (Math.min(height - 1, Math.floor(y * height)) * width + Math.min(width - 1, Math.floor(x * width)));
    return [...bytes.slice(at, at + 3)];
  };
  const valueOf = (own, place) => {
    const rgb = colourAt(own, place);
    if (!rgb) return "–";
    const colour = `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    if (own.meanings?.[colour]) return own.meanings[colour];
    if (own.scale && ramp.has(colour)) {
      const [low, high] = own.scale;
      return `≈ ${+(low + ramp.get(colour) * (high - low)).toPrecision(3)}`;
    }
    return `RGB ${rgb.join(", ")}`;
  };
  const point = () => {
    cross.hidden = !cursor;
    if (!cursor) { values.replaceChildren(); return; }
    const { pictures } = items[item];
    const shape = pictures[picture].shape ?? [base.naturalWidth, base.naturalHeight];
    const [x, y] = cursor.map((part, i) => Math.min(shape[i] - 1, Math.floor(part * shape[i])));
    cross.style.left = `${100 * cursor[0]}%`;
    cross.style.top = `${100 * cursor[1]}%`;
    const pairs = [["pixel", `x ${x}, y ${y}`]];
    try {
      for (const own of pictures) pairs.push([own.name, valueOf(own, cursor)]);
    } catch {
      pairs.push(["values", "A browser does not read pixels of files beside a local page. Make the page "
        + "with --single-file, or open it from a server (python -m http.server)."]);
    }
    values.replaceChildren(...pairs.flatMap(([name, value]) =>
      [made("dt", { textContent: name }), made("dd", { textContent: value })]));
  };
  const open = (i, k) => {
    [item, picture] = [i, k];
    overlay = errorsOf(items[i]);
    if (overlay === k) overlay = turn(k + 1, items[i].pictures.length);
    if (!box.open) box.showModal();
    stage.focus();
    show();
  };

  below.addEventListener("input", () => { picture = +below.value; show(); });
  above.addEventListener("input", () => { overlay = +above.value; show(); });
  slider.addEventListener("input", () => { over.style.opacity = slider.value / 100; });
  before.addEventListener("click", () => { item = turn(item - 1, items.length); show(); });
  after.addEventListener("click", () => { item = turn(item + 1, items.length); show(); });
  close.addEventListener("click", () => box.close());
  link.addEventListener("click", () => box.close());
  box.addEventListener("close", () => {
    if (location.hash.startsWith("#view-")) history.replaceState(null, "", `#gallery-${items[item].id}`);
  });
  stage.addEventListener("pointermove", (event) => {
    const place = base.getBoundingClientRect();
    cursor = [(event.clientX - place.left) / place.width, (event.clientY - place.top) / place.height]
      .map((part) => Math.max(0, Math.min(0.999999, part)));
    point();
  });
  box.addEventListener("keydown", (event) => {
    if (["INPUT", "SELECT"].includes(event.target.tagName)) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
    const other = { ArrowUp: -1, ArrowDown: 1 }[event.key] ?? 0;
    if (!step && !other) return;
    event.preventDefault();
    if (event.shiftKey) {
      const shape = items[item].pictures[picture].shape ?? [100, 100];
      cursor = (cursor ?? [0.5, 0.5]).map((part, i) =>
        Math.max(0, Math.min(0.999999, part + (i ? other : step) / shape[i])));
      point();
      return;
    }
    if (step) item = turn(item + step, items.length);
    if (other) picture = turn(picture + other, items[item].pictures.length);
    show();
  });

  openPicture = open;
  items.forEach((own, i) => {
    const best = errorsOf(own);
    thumbnails.set(own.id, (name) => {
      const image = made("img", { loading: "lazy", src: own.pictures[best].source, alt: "" });
      const button = made("button", { type: "button", className: "thumbnail" }, image);
      button.setAttribute("aria-label", `Pictures of ${name}`);
      button.addEventListener("click", () => open(i, best));
      return button;
    });
  });
  byHash.push((id) => {
    const i = items.findIndex((own) => id === `view-${own.id.slice(5)}`);
    if (i >= 0) open(i, 0);
  });
  dispatchEvent(new Event("thumbnails"));
}
