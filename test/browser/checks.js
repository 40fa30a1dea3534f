// SPDX-License-Identifier: Apache-2.0
// Returns what is wrong with the page: its width, its language, landmarks and headings, the names of what can be used, and the contrast
// of its words, as WCAG 2.2 AA asks.
(() => {
  const found = [], root = document.documentElement;
  const say = (what, e) => { if (found.length < 20) found.push(what + (e ? ": " + e.outerHTML.slice(0, 160) : "")); };
  const all = (selector) => [...document.querySelectorAll(selector)];
  if (window.ran) say("a script in a message ran");
  if (/[\u202a-\u202e\u2066-\u2069]/.test(root.outerHTML)) say("bidirectional characters");
  if (root.scrollWidth > root.clientWidth) {
    say(`the document is ${root.scrollWidth} px wide, the window ${root.clientWidth}`);
    all("body *").filter((e) => !e.closest(".scroll") && e.getBoundingClientRect().right > root.clientWidth).slice(-2).forEach((e) => say("too wide", e));
  }
  if (!root.lang || !document.title || !document.querySelector("meta[name=viewport]")) say("no language, title or viewport");
  for (const one of ["h1", "header", "main", "nav[aria-label]"]) if (all(one).length !== 1) say(`${all(one).length} of ${one}`);
  all("h1, h2, h3, h4").reduce((before, e) => {
    const level = Number(e.tagName[1]);
    if (level > before + 1) say("a level of headings is missing", e);
    return level;
  }, 0);
  const name = (e) => e.getAttribute("aria-label") || (e.labels && e.labels.length ? e.labels[0].textContent : e.textContent);
  all("a[href], button, input, select, textarea, summary, [tabindex]").forEach((e) => { if (!name(e).trim()) say("no name", e); });
  all("th").forEach((e) => { if (!e.scope) say("a header without scope", e); });
  all("table").forEach((e) => { if (!e.tHead) say("a table without a head", e); });
  const ids = all("[id]").map((e) => e.id);
  if (new Set(ids).size !== ids.length) say("an id is there twice");

  const rgba = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = rgba(color).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backs = new Map();
  const back = (e) => {
    if (!backs.has(e)) {
      const own = getComputedStyle(e).backgroundColor, [, , , alpha = 1] = rgba(own);
      backs.set(e, alpha > 0 || !e.parentElement ? own : back(e.parentElement));
    }
    return backs.get(e);
  };
  for (const e of all("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()) && e.tagName !== "INPUT") continue;
    const style = getComputedStyle(e), a = light(style.color), b = light(back(e)), size = parseFloat(style.fontSize);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) say(`contrast ${ratio.toFixed(2)}`, e);
  }
  return found;
})();
