// What a page's scripts would have to do with its styles. Gives JSON. Properties come from prototypes, as in
// measure.js, because names in the page can shadow those of the document.
(() => {
  "use strict";
  const all = (selector) => Array.from(Document.prototype.querySelectorAll.call(document, selector));
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name) ?? "";
  const textOf = Object.getOwnPropertyDescriptor(Node.prototype, "textContent").get;
  const scripts = all("script");
  return JSON.stringify({
    sources: scripts.map((script) => attribute(script, "src")),
    inline: scripts.map((script) => textOf.call(script)).filter((text) => text.includes("tailwind.config")),
    styles: all('style[type="text/tailwindcss"]').map((style) => textOf.call(style)),
    classes: [...new Set(all("[class]").flatMap((each) => attribute(each, "class").split(/\s+/)))].join(" "),
  });
})
