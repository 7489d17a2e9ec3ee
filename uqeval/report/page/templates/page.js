"use strict";
const data = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
const made = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const byHash = [];
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
for (const limit of JSON.parse(document.getElementById("verdicts")?.dataset.limits ?? "[]")) {
  document.getElementById(`score-${limit.address}`)?.cells[0]
    .append(made("a", { href: "#verdicts", className: "gated", textContent: ` gate: ${limit.outcome}` }));
}
{% include "items.js" %}
{% include "gallery.js" %}
{% include "lightbox.js" %}
{% include "timeline.js" %}
const follow = () => {
  const id = decodeURIComponent(location.hash.slice(1));
  for (const open of byHash) open(id);
};
addEventListener("hashchange", follow);
if (location.hash) follow();
