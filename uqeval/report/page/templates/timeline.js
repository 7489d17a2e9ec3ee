const film = document.getElementById("figure-temporal");
const moments = new Map();
for (const mark of film?.querySelectorAll("circle[data-item]") ?? []) {
  moments.set(+mark.dataset.item, [...(moments.get(+mark.dataset.item) ?? []), mark]);
}
if (moments.size > 1) {
  const places = [...moments.keys()].sort((a, b) => a - b);
  const svg = film.querySelector("svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "now");
  svg.append(line);
  const range = made("input", { type: "range", min: 0, max: places.length - 1, value: 0 });
  const text = made("p");
  const [scores, pictures] = ["Scores of the pair", "Pictures of the pair"].map((word) =>
    made("a", { textContent: word }));
  const strip = made("div", { className: "pictures strip" });
  film.querySelector(".plot").after(made("div", { className: "timeline" },
    made("label", {}, "Pair of frames ", range), text, made("p", {}, scores, " ", pictures), strip));
  const show = () => {
    const place = places[range.value];
    const marks = moments.get(place);
    const x = marks[0].getAttribute("cx");
    const { upper, lower } = marks[0].parentNode.dataset;
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: upper, y2: lower })) {
      line.setAttribute(name, value);
    }
    text.textContent = marks.map((mark) => mark.textContent).join("; ");
    range.setAttribute("aria-valuetext", text.textContent);
    scores.href = `#item-${place}`;
    const own = exhibits.find(({ id }) => id === `item-${place}`);
    pictures.hidden = !own;
    pictures.href = `#view-${place}`;
    strip.replaceChildren(...(own?.pictures ?? []).map(({ source, alt, group, title }) =>
      made("figure", {}, made("img", { src: source, alt }),
        made("figcaption", { textContent: group ? `${group}: ${title}` : title }))));
  };
  range.addEventListener("input", show);
  show();
}
