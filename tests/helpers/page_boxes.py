"""What a browser says about the boxes of a page: what is cut off, and what overlaps."""

from __future__ import annotations

from typing import Any

from browser import Browser

MEASURE = """
const wide = document.documentElement.clientWidth, found = [];
const name = e => e.tagName.toLowerCase() + " “" + e.textContent.trim().slice(0, 40) + "”";
const shown = e => e.checkVisibility() && !e.closest(".visually-hidden, .skip, .motif");
const kinds = "h1,h2,h3,p,li,dt,dd,th,td,summary,figcaption,code,pre,a,button,svg.plot text";
const texts = [...document.querySelectorAll(kinds)];
for (const e of texts.filter(shown)) {
  const box = e.getBoundingClientRect();
  if (!box.width) continue;
  if (box.right > wide + 1 || box.left < -1) found.push("beyond the screen: " + name(e));
  if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && !(e instanceof SVGElement))
    found.push("wider than its box: " + name(e));
  for (let up = e.parentElement; up && !(e instanceof SVGElement); up = up.parentElement) {
    const outer = up.getBoundingClientRect();
    if (getComputedStyle(up).overflowX !== "visible" && box.right > outer.right + 1) found.push("cut off: " + name(e));
  }
}
const overlap = (a, b, slack) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
const compare = (elements, slack, what) => {
  const boxes = elements.map(e => [e, e.getBoundingClientRect()]);
  boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, two]) => {
    if (overlap(one, two, slack)) found.push(what + ": " + name(a) + " and " + name(b));
  }));
};
for (const svg of [...document.querySelectorAll("svg.plot")].filter(shown)) {
  const outer = svg.getBoundingClientRect(), inside = [...svg.querySelectorAll("text")];
  for (const text of inside) {
    const box = text.getBoundingClientRect();
    if (box.left < outer.left - 2 || box.right > outer.right + 2
        || box.top < outer.top - 2 || box.bottom > outer.bottom + 2)
      found.push("beyond its figure: " + name(text));
  }
  compare(inside.filter(t => !/rotate\\(-[1-9]/.test(t.getAttribute("transform") ?? "")), 2.5, "overlap in a figure");
}
for (const row of document.querySelectorAll("tr")) compare([...row.cells].filter(shown), 1, "cells overlap");
for (const list of document.querySelectorAll(".chips, nav ul, .facts, .figures, .entries, main"))
  compare([...list.children].filter(shown), 1, "blocks overlap");
return found;
"""


def faults(browser: Browser) -> list[str]:
    """Everything on the open page that is cut off, wider than its box, or overlaps something; all folds are opened."""
    browser.script("for (const one of document.querySelectorAll('details')) one.open = true")
    found: Any = browser.script(MEASURE)
    return list(found)
