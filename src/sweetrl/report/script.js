"use strict";
// Comforts only: without this script everything on the page can be read all the same.

// ---- light or dark
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});

// ---- what is under the pointer
const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const at = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
  tip.hidden = at === null;
  if (at === null) return;
  tip.textContent = at.dataset.tip;
  const { width, height } = tip.getBoundingClientRect();
  const above = event.clientY - height - 12;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 4))}px`;
  tip.style.top = `${above > 4 ? above : event.clientY + 18}px`;
});

// ---- the list of tasks
for (const controls of document.querySelectorAll(".controls")) {
  const box = document.getElementById(controls.dataset.list);
  const role = (name) => controls.querySelector(`[data-role="${name}"]`);
  const [better, worse, search, count] = ["better", "worse", "search", "count"].map(role);
  const rows = [...box.querySelectorAll(".task-list > .task")].map((row) => ({
    row,
    words: row.querySelector(".name").textContent.toLowerCase(),
    values: row.dataset.values.split(",").map((each) => (each === "" ? null : Number(each))),
  }));
  const beats = (values) => {
    if (!better) return true;
    const others = (skipped) => values.filter((value, index) => index !== skipped && value !== null);
    const [high, low] = [better, worse].map((each) => (each.value === "" ? null : Number(each.value)));
    if (high === null && low === null) return true;
    const top = high === null ? Math.max(...others(low)) : values[high];
    const bottom = low === null ? Math.min(...others(high)) : values[low];
    return top !== null && bottom !== null && top > bottom;
  };
  const update = () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const { row, words, values } of rows) {
      row.hidden = !(words.includes(wanted) && beats(values));
      shown += row.hidden ? 0 : 1;
    }
    const all = `${rows.length} ${rows.length === 1 ? "task" : "tasks"}`;
    count.textContent = shown === rows.length ? all : `${shown} of ${all}`;
    for (const button of box.querySelectorAll(".matrix button")) {
      const chosen = better.value === button.dataset.better && worse.value === button.dataset.worse;
      button.setAttribute("aria-pressed", String(chosen));
    }
  };
  for (const control of [better, worse, search]) control?.addEventListener("input", update);
  for (const button of box.querySelectorAll(".matrix button")) {
    button.addEventListener("click", () => {
      const again = button.getAttribute("aria-pressed") === "true";
      better.value = again ? "" : button.dataset.better;
      worse.value = again ? "" : button.dataset.worse;
      update();
    });
  }
}

// ---- large pictures
const enlarged = document.getElementById("enlarged");
document.addEventListener("click", (event) => {
  const picture = event.target.closest(".zoom")?.querySelector("img");
  if (!picture) return;
  enlarged.querySelector("img")?.remove();
  enlarged.append(picture.cloneNode());
  enlarged.showModal();
});
enlarged.addEventListener("click", (event) => {
  if (event.target === enlarged || event.target.closest(".close")) enlarged.close();
});

// ---- on paper nothing is folded away
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of opened) each.open = false;
});
