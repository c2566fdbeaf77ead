// A convenience, not a need: click a header to sort the detailed table.
for (const table of document.querySelectorAll("table.detail")) {
  const body = table.tBodies[0], start = [...body.rows];
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const turn = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] || "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      if (turn !== "none") head.setAttribute("aria-sort", turn);
      const sign = turn === "descending" ? -1 : 1;
      const key = row => row.cells[i].textContent.trim();
      const unit = { s: 1, min: 60, h: 3600 };
      const number = text => {
        const times = [...text.matchAll(/([\d.]+) (s|min|h)\b/g)];
        return times.length ? times.reduce((sum, t) => sum + t[1] * unit[t[2]], 0) : parseFloat(text);
      };
      const order = (a, b) => {
        const x = number(key(a)), y = number(key(b));
        if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        return sign * (Number.isNaN(x) ? key(a).localeCompare(key(b)) : x - y);
      };
      body.replaceChildren(...(turn === "none" ? start : [...start].sort(order)));
    });
  });
}
