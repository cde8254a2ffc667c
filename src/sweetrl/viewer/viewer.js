"use strict";
// Keys, live updates, annotations and the slider. Without this script the pages can be read all the same.
(() => {
  const root = document.documentElement;
  const main = document.getElementById("content");
  const find = (id) => document.getElementById(id);
  root.classList.add("scripted");

  // ---- light or dark, remembered
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  find("theme").addEventListener("click", () => localStorage.setItem("theme", root.dataset.theme));

  // ---- filters apply at once
  const filters = find("filters");
  if (filters) {
    let pause;
    const apply = () => {
      for (const each of filters.elements) if (each.name && each.value === "") each.disabled = true;
      filters.requestSubmit();
    };
    filters.addEventListener("change", (event) => {
      if (event.target.type !== "search") apply();
    });
    find("search").addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(() => refresh(addressOf(filters)), 250);
    });
  }

  addEventListener("pageshow", (event) => {
    if (!event.persisted || !filters) return; // the page as it was left, when it had just been changed and sent
    for (const each of filters.elements) each.disabled = false;
    filters.reset();
  });

  function addressOf(form) {
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    const query = new URLSearchParams(fields).toString();
    return query ? `/?${query}` : "/";
  }

  // A run that begins later is in the menus too.
  function extend(menu, fresh) {
    if (!fresh || menu === document.activeElement || menu.innerHTML === fresh.innerHTML) return;
    const chosen = menu.value;
    menu.replaceChildren(...fresh.options);
    menu.value = chosen;
  }

  // Its place in the list is part of a link too, and changes as the list grows.
  function dialogueOf(link) {
    const fields = new URL(link.href).searchParams;
    return JSON.stringify([fields.get("of"), fields.get("id")]);
  }

  // ---- the part of the page that follows the runs
  let asked = 0;
  async function refresh(address, marking = false) {
    const number = ++asked;
    const answer = await fetch(address);
    if (!answer.ok) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (number !== asked) return true;
    const fresh = page.getElementById("live"), live = find("live");
    if (!fresh || !live) {
      update(page.getElementById("content"));
      return true;
    }
    const folds = fresh.querySelectorAll("details");
    live.querySelectorAll("details").forEach((each, number) => { if (each.open && folds[number]) folds[number].open = true; });
    for (const menu of filters?.querySelectorAll("select") ?? []) extend(menu, page.querySelector(`#filters [name="${menu.name}"]`));
    const links = (place) => [...place.querySelectorAll(".rows a")];
    const known = new Set(links(live).map(dialogueOf));
    const chosen = live.querySelector(".chosen a"), focused = links(live).find((link) => link === document.activeElement);
    if (marking) {
      for (const link of links(fresh)) if (!known.has(dialogueOf(link))) link.parentElement.classList.add("fresh");
    }
    live.replaceWith(fresh);
    const again = (old) => old && links(fresh).find((link) => dialogueOf(link) === dialogueOf(old));
    again(chosen)?.parentElement.classList.add("chosen");
    again(focused)?.focus({ preventScroll: true });
    if (address !== location.pathname + location.search) history.replaceState(null, "", address);
    return true;
  }

  // ---- an open dialogue: only what is different from the last answer is changed, so that the reader's place stays
  let sent = new DOMParser().parseFromString(main.outerHTML, "text/html").getElementById("content");
  function update(fresh) {
    if (sent.innerHTML === fresh.innerHTML) return;
    const isSeen = (each) => {
      const { top, bottom } = each.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    };
    const places = [document.querySelector(".chat > .current"), ...document.querySelectorAll(".chat > li, main > section")];
    const place = scrollY > 0 ? places.find((each) => each && isSeen(each)) : null;
    const before = place?.getBoundingClientRect().top;
    amend(main, sent, fresh);
    sent = fresh;
    find("said").textContent = "this dialogue has changed";
    if (place?.isConnected) scrollBy({ top: place.getBoundingClientRect().top - before, behavior: "instant" });
  }

  // `old` is how the server had sent what is now `shown`.
  function amend(shown, old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType === Node.TEXT_NODE) {
      shown.data = fresh.data;
      return;
    }
    const places = [...shown.childNodes], known = [...old.childNodes];
    if (places.length !== known.length) {
      shown.replaceWith(document.importNode(fresh, true));
      return;
    }
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) shown.setAttribute(name, value);
    for (const { name } of old.attributes) if (!fresh.hasAttribute(name)) shown.removeAttribute(name);
    const kind = (node) => `${node.nodeName} ${node.id} ${node.classList?.[0]}`;
    let at = 0;
    for (const each of fresh.childNodes) {
      const match = known.findIndex((node, number) => number >= at && kind(node) === kind(each));
      if (match < 0) shown.insertBefore(document.importNode(each, true), places[at] ?? null);
      else {
        for (; at < match; at++) places[at].remove();
        amend(places[at], known[at], each);
        at++;
      }
    }
    for (; at < known.length; at++) places[at].remove();
  }

  if (main.dataset.live !== undefined) follow();
  async function follow() {
    let version = main.dataset.live ? Number(main.dataset.live) : null;
    for (;;) {
      try {
        const state = await (await fetch("/api/state")).json();
        if (version !== null && state.version !== version) {
          find("pulse").hidden = false;
          if (find("live")) find("said").textContent = `${state.dialogues} dialogues`;
          if (await refresh(location.pathname + location.search, true)) version = state.version;
        } else version = state.version;
      } catch {
        find("pulse").hidden = true; // the server has gone; it may come back
      }
      await new Promise((done) => setTimeout(done, document.hidden ? 10000 : 1500));
    }
  }

  // ---- annotations
  async function annotate(form, mark) {
    const { run, episode, turn } = form.dataset;
    const note = form.querySelector("input");
    const saved = form.querySelector(".saved");
    const failure = await send("/api/annotations", {
      run, episode_id: episode, turn: Number(turn), mark, note: mark === "none" ? "" : note.value,
    });
    saved.textContent = failure || "saved";
    saved.classList.toggle("failed", failure !== "");
    if (failure) return;
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.mark === mark));
    note.hidden = mark === "none";
  }
  for (const form of document.querySelectorAll(".annotation")) {
    const pressed = () => form.querySelector('[aria-pressed="true"]')?.dataset.mark;
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const button of form.querySelectorAll("button")) {
      button.addEventListener("click", () => annotate(form, pressed() === button.dataset.mark ? "none" : button.dataset.mark));
    }
    form.querySelector("input").addEventListener("change", () => annotate(form, pressed() ?? "none"));
  }

  // ---- games
  if (document.querySelector(".play")) history.scrollRestoration = "manual"; // each page of a game begins where it matters
  function post(form, path, body) {
    const saved = form.querySelector(".saved");
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    saved.classList.remove("failed");
    saved.textContent = "sending …";
    send(path, body).then((failure) => {
      if (!failure) return location.reload();
      for (const button of form.querySelectorAll("button")) button.disabled = false;
      saved.classList.add("failed");
      saved.textContent = failure;
    });
  }
  async function send(path, body) {
    try {
      const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
      return answer.ok ? "" : (await answer.json()).error;
    } catch {
      return "the server does not answer; send it again";
    }
  }
  const awaited = find("awaited");
  if (awaited) {
    const source = new EventSource("/api/reply"); // connects again by itself if the server was restarted
    awaited.scrollIntoView({ block: "nearest" });
    source.addEventListener("message", (event) => { awaited.querySelector(".heard").textContent = JSON.parse(event.data); });
    source.addEventListener("done", () => { source.close(); location.reload(); });
  }
  find("again")?.addEventListener("submit", (event) => {
    event.preventDefault();
    post(event.target, "/api/again", {});
  });
  find("start")?.addEventListener("submit", (event) => {
    event.preventDefault();
    const { name, consents } = event.target.elements;
    post(event.target, "/api/start", { name: name?.value ?? "", consents: consents?.checked ?? false });
  });
  const entry = find("say");
  if (entry) {
    entry.addEventListener("submit", (event) => {
      event.preventDefault();
      post(entry, "/api/say", { text: entry.elements.text.value, answer: event.submitter?.name === "answer" });
    });
    entry.elements.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) entry.requestSubmit(entry.elements.say);
    });
    entry.scrollIntoView({ block: "end", behavior: "instant" });
    entry.elements.text.focus({ preventScroll: true });
  }

  // ---- slider
  const move = (range) => range.closest(".slider")?.style.setProperty("--split", `${range.value}%`);
  document.querySelectorAll(".slider input").forEach(move);
  document.addEventListener("input", (event) => move(event.target));

  // ---- hidden information is shown without losing one's place
  find("hidden-switch")?.addEventListener("click", (event) => { event.currentTarget.hash = location.hash; });

  // ---- keys
  const turns = [...document.querySelectorAll(".chat > li[data-turn]")];
  const rows = () => [...document.querySelectorAll(".rows li")];
  const follow_link = (id) => find(id)?.click();

  function choose(items, step, kind) {
    if (!items.length) return;
    const now = items.findIndex((item) => item.classList.contains(kind));
    const next = items[now < 0 ? (step > 0 ? 0 : items.length - 1) : Math.max(0, Math.min(items.length - 1, now + step))];
    for (const item of items) item.classList.toggle(kind, item === next);
    const target = kind === "chosen" ? next.querySelector("a") : next;
    target.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest", behavior: "instant" });
    if (kind === "current") history.replaceState(null, "", `#${next.id}`);
  }
  const step = (by) => (turns.length ? choose(turns, by, "current") : choose(rows(), by, "chosen"));

  const named = location.hash && find(location.hash.slice(1));
  if (named && turns.includes(named)) named.classList.add("current");

  const keys = {
    j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1),
    ArrowLeft: () => follow_link("to-prev"), ArrowRight: () => follow_link("to-next"),
    h: () => follow_link("hidden-switch"), u: () => follow_link("to-list"),
    "/": () => { const box = find("search"); if (box) { box.focus(); box.select(); } else follow_link("to-list"); },
    "?": () => find("keys").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    if (event.target.closest("input, select, textarea, dialog[open]")) return;
    if (event.key.startsWith("Arrow") && event.target.closest("pre, .scroll, summary")) return;
    event.preventDefault();
    keys[event.key]();
  });
  find("help").addEventListener("click", () => find("keys").showModal());
})();
