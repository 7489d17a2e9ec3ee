// Exhibits: those in HTML, and further ones of the data, which become HTML on demand.
const exhibits = [...document.querySelectorAll(".exhibit")].map((article) => ({
  id: article.id.replace("gallery-", ""),
  title: `${article.querySelector("h3").textContent}, ${article.querySelector(".why").textContent}`,
  pictures: [...article.querySelectorAll("img")]
    .map((image) => ({ ...image.dataset, source: image.getAttribute("src"), alt: image.alt })),
}));
let openPicture = null;
if (exhibits.length) {
  const gallery = document.getElementById("gallery");
  const first = exhibits.length;
  const { more } = data("picture-data");
  for (const { item, name, rank, why, groups } of more) {
    exhibits.push({
      id: `item-${item}`,
      title: `${name}, ${rank} ${why}`,
      pictures: groups.flatMap(([group, own]) => own.map((picture) => ({ ...picture, group }))),
    });
  }
  const figureOf = (picture, group) => {
    const image = made("img", { loading: "lazy", src: picture.source, alt: picture.alt });
    Object.assign(image.dataset, { title: picture.title, group });
    return made("figure", {}, image, made("figcaption", { textContent: picture.title }));
  };
  const articleOf = ({ item, name, rank, why, scores, groups }) => made(
    "article", { id: `gallery-item-${item}`, className: "exhibit" },
    made("h3", {}, table ? made("a", { href: `#item-${item}`, textContent: name }) : name),
    made("p", { className: "why" },
      made("span", { className: `badge ${rank.split(" ")[0].toLowerCase()}`, textContent: rank }), ` ${why}`),
    made("p", { className: "numbers", textContent: scores.map((pair) => pair.join(" ")).join(" · ") }),
    ...groups.flatMap(([group, own]) => [
      ...(group ? [made("p", { className: "group", textContent: group })] : []),
      made("div", { className: group ? "pictures three" : "pictures" }, ...own.map((picture) => figureOf(picture, group))),
    ]),
  );
  const enliven = (article) => {
    for (const image of article.querySelectorAll("img")) {
      image.tabIndex = 0;
      image.setAttribute("role", "button");
      image.setAttribute("aria-label", `Enlarge: ${image.alt}`);
    }
  };
  gallery.querySelectorAll(".exhibit").forEach(enliven);

  let count = 0;
  const button = made("button", { type: "button" });
  const text = made("span");
  const showMore = (last) => {
    for (; count < Math.min(last, more.length); count += 1) {
      const article = articleOf(more[count]);
      enliven(article);
      button.parentElement.before(article);
    }
    text.textContent = `${first + count} of ${exhibits.length} items`;
    button.textContent = `Show ${Math.min(first, more.length - count)} more`;
    button.hidden = count === more.length;
  };
  if (more.length) {
    gallery.append(made("p", { className: "pages" }, text, button));
    showMore(0);
    button.addEventListener("click", () => showMore(count + first));
  }
  byHash.push((id) => {
    const place = more.findIndex(({ item }) => id === `gallery-item-${item}`);
    if (place < 0) return;
    showMore(place + 1);
    document.getElementById(id).scrollIntoView();
  });
  const enlarge = (event) => {
    const article = event.target.closest(".exhibit");
    if (!article || event.target.tagName !== "IMG") return;
    event.preventDefault();
    const item = exhibits.findIndex(({ id }) => article.id === `gallery-${id}`);
    openPicture(item, [...article.querySelectorAll("img")].indexOf(event.target));
  };
  gallery.addEventListener("click", enlarge);
  gallery.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") enlarge(event);
  });
}
