// Stops everything that moves, then measures the page: its size and its elements. Gives JSON.
//
// Nothing is read off `document` or an element directly: a form field called "body" or "children" would be found
// instead. Every property comes from its prototype.
((limits) => {
  "use strict";
  const getter = (type, name) => {
    const read = Object.getOwnPropertyDescriptor(type.prototype, name).get;
    return (target) => read.call(target);
  };
  const method = (type, name) => {
    const call = type.prototype[name];
    return (target, ...rest) => call.apply(target, rest);
  };
  const bodyOf = getter(Document, "body");
  const rootOf = getter(Document, "documentElement");
  const activeOf = getter(Document, "activeElement");
  const scrollerOf = getter(Document, "scrollingElement");
  const byTag = method(Document, "getElementsByTagName");
  const animationsOf = method(Document, "getAnimations");
  const createElement = method(Document, "createElement");
  const createText = method(Document, "createTextNode");
  const walkerOf = method(Document, "createTreeWalker");
  const rectOf = method(Element, "getBoundingClientRect");
  const attribute = method(Element, "getAttribute");
  const setAttribute = method(Element, "setAttribute");
  const removeAttribute = method(Element, "removeAttribute");
  const append = method(Node, "appendChild");
  const replace = method(Node, "replaceChild");
  const tagOf = getter(Element, "localName");
  const scrollWidthOf = getter(Element, "scrollWidth");
  const scrollHeightOf = getter(Element, "scrollHeight");
  const parentOf = getter(Node, "parentNode");
  const firstChildOf = getter(Node, "firstChild");
  const nextOf = getter(Node, "nextSibling");
  const typeOf = getter(Node, "nodeType");
  const valueOf = getter(Node, "nodeValue");

  const SKIPPED = new Set(["script", "style", "link", "meta", "title", "template", "base", "br", "option", "source", "track"]);
  const PICTURES = new Set(["img", "svg", "canvas", "video", "picture"]);

  // A marquee cannot be told where to stop: a plain element with its looks and its children takes its place.
  function standStill(banner) {
    const still = createElement(document, "div");
    setAttribute(still, "class", attribute(banner, "class") ?? "");
    setAttribute(still, "id", attribute(banner, "id") ?? "");
    setAttribute(still, "style", (attribute(banner, "style") ?? "") + ";overflow:hidden;white-space:nowrap");
    for (let child = firstChildOf(banner); child !== null; child = firstChildOf(banner)) append(still, child);
    replace(parentOf(banner), still, banner);
  }

  // Where scripts are off, the browser offers its own controls on every video, and they never look twice the same.
  function hideControls() {
    const style = createElement(document, "style");
    append(style, createText(document, ":is(video, audio)::-webkit-media-controls { display: none !important }"));
    append(rootOf(document), style);
  }

  function stopMotion() {
    if (byTag(document, "video").length + byTag(document, "audio").length > 0) hideControls();
    for (const animation of animationsOf(document)) {
      try {
        animation.finish();
      } catch {
        animation.cancel(); // it has no end
      }
    }
    for (const drawing of byTag(document, "svg")) {
      if (!(drawing instanceof SVGSVGElement)) continue;
      SVGSVGElement.prototype.pauseAnimations.call(drawing);
      SVGSVGElement.prototype.setCurrentTime.call(drawing, 0);
    }
    for (const bar of byTag(document, "progress")) {
      if (attribute(bar, "value") === null) setAttribute(bar, "value", "0");
    }
    for (const banner of [...byTag(document, "marquee")]) standStill(banner);
    const active = activeOf(document);
    if (active instanceof HTMLElement) HTMLElement.prototype.blur.call(active);
  }

  const hexOf = new Map();
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  function hex(colour) {
    let found = hexOf.get(colour);
    if (found === undefined) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const parts = Array.from(context.getImageData(0, 0, 1, 1).data, (part) => part.toString(16).padStart(2, "0"));
      found = "#" + parts.slice(0, parts[3] === "ff" ? 3 : 4).join("");
      hexOf.set(colour, found);
    }
    return found;
  }
  const paint = (colour) => (colour === "rgba(0, 0, 0, 0)" || colour === "" ? "" : hex(colour));

  function ownText(element, tag) {
    if (tag === "input") {
      const shown = attribute(element, "value") || attribute(element, "placeholder");
      return ["hidden", "password", "checkbox", "radio"].includes(attribute(element, "type")) ? "" : shown || "";
    }
    let text = tag === "textarea" ? attribute(element, "placeholder") || "" : "";
    for (let child = firstChildOf(element); child !== null; child = nextOf(child)) {
      if (typeOf(child) === Node.TEXT_NODE && text.length < limits.text) text += " " + valueOf(child);
    }
    return text;
  }

  // A cut between the two halves of a character leaves neither.
  const upTo = (length, text) => text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");

  // An element that is never shown has no computed style at all, and a transformed one may be infinitely large.
  const round = (length) => (Number.isFinite(length) ? Math.round(length * 100) / 100 : 0);

  function borderOf(style) {
    const sides = ["Top", "Right", "Bottom", "Left"].map((side) => ({
      width: round(parseFloat(style[`border${side}Width`])),
      colour: style[`border${side}Color`],
    }));
    return sides.reduce((widest, side) => (side.width > widest.width ? side : widest));
  }

  function radiusOf(style, width) {
    const radius = style.borderTopLeftRadius;
    return radius.endsWith("%") ? (parseFloat(radius) * width) / 100 : parseFloat(radius);
  }

  function boxOf(element, around, parent) {
    const tag = tagOf(element);
    const rect = rectOf(element);
    const style = getComputedStyle(element);
    const border = borderOf(style);
    const clear = (around ? around.clear : false) || style.opacity === "0";
    const box = {
      tag,
      x: round(rect.left + scrollX),
      y: round(rect.top + scrollY),
      width: round(rect.width),
      height: round(rect.height),
      text: upTo(limits.text, ownText(element, tag).replace(/\s+/g, " ").trim()),
      color: hex(style.color || "black"),
      background: paint(style.backgroundColor),
      image: PICTURES.has(tag) || style.backgroundImage !== "none",
      font_size: round(parseFloat(style.fontSize)),
      font_weight: Math.round(round(parseFloat(style.fontWeight))),
      text_align: style.textAlign,
      border_radius: round(radiusOf(style, rect.width)),
      border_width: border.width,
      border_color: border.width > 0 ? paint(border.colour) : "",
      depth: around ? around.depth + 1 : 0,
      parent,
      visible: rect.width > 0 && rect.height > 0 && style.visibility === "visible" && !clear,
    };
    const bottom = box.y + box.height;
    const clip = around ? around.clip : Infinity;
    const inner = style.overflowY === "visible" ? clip : Math.min(clip, bottom);
    return { box, clear, depth: box.depth, bottom: Math.min(bottom, clip), clip: inner };
  }

  // The next element that is not inside of the current one. (A filter would be a callback, and none may run here.)
  function leave(walker) {
    for (;;) {
      const next = walker.nextSibling();
      if (next !== null || walker.parentNode() === null) return next;
    }
  }

  // Elements of the body in document order, drawings without their insides; at most limits.boxes of them.
  function collect(body) {
    const walker = walkerOf(document, body, NodeFilter.SHOW_ELEMENT);
    const indices = new Map();
    const found = [];
    let element = body;
    while (element !== null && found.length < limits.boxes) {
      const tag = tagOf(element);
      if (SKIPPED.has(tag) && element !== body) {
        element = leave(walker);
        continue;
      }
      const parent = element === body ? -1 : indices.get(parentOf(element));
      indices.set(element, found.length);
      const seen = boxOf(element, found[parent] ?? null, parent);
      // The body's own overflow belongs to the window and clips nothing.
      found.push(element === body ? { ...seen, clip: Infinity } : seen);
      element = tag === "svg" ? leave(walker) : walker.nextNode();
    }
    return { found, cut: element !== null };
  }

  // Where a short page ends. Without a doctype the body fills the window however little it holds, so the root is
  // collapsed to see what the content takes; what hangs out of the body counts too.
  function contentHeight(body, found) {
    const root = rootOf(document);
    const before = attribute(root, "style");
    setAttribute(root, "style", (before ?? "") + ";height:0!important;min-height:0!important");
    const bodyBottom = rectOf(body).bottom + scrollY;
    if (before === null) removeAttribute(root, "style");
    else setAttribute(root, "style", before);
    return found.slice(1).reduce((bottom, each) => (each.box.visible ? Math.max(bottom, each.bottom) : bottom), bodyBottom);
  }

  stopMotion();
  const body = bodyOf(document) ?? rootOf(document);
  const { found, cut } = collect(body);
  const scroller = scrollerOf(document) ?? rootOf(document);
  const full = scrollHeightOf(scroller);
  const short = full <= innerHeight;
  const height = short ? Math.min(innerHeight, Math.max(1, Math.ceil(contentHeight(body, found)))) : full;
  if (short) found[0].box.height = Math.max(0, Math.min(found[0].box.height, height - found[0].box.y));
  return JSON.stringify({
    width: Math.max(innerWidth, scrollWidthOf(scroller)),
    height,
    boxes: found.map((each) => each.box),
    cut,
  });
})
