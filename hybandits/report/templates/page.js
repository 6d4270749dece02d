// Legends that switch curves, and curves that tell their numbers. Without this script everything can still be read.
"use strict";
(() => {
  const format = (value) => value.toLocaleString("en", { maximumSignificantDigits: 5 });

  for (const figure of document.querySelectorAll("figure")) {
    const source = figure.querySelector('script[type="application/json"]');
    if (!source) continue;
    const data = JSON.parse(source.textContent);
    const hidden = new Set();

    for (const key of figure.querySelectorAll("span[data-curve]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "keyed";
      button.title = "Switch this curve off or on";
      button.setAttribute("aria-pressed", "true");
      button.append(...key.childNodes);
      key.replaceWith(button);
      const number = Number(key.dataset.curve);
      button.addEventListener("click", () => {
        const off = !hidden.delete(number);
        if (off) hidden.add(number);
        button.setAttribute("aria-pressed", String(!off));
        for (const part of figure.querySelectorAll(`.curve[data-curve="${number}"]`)) part.classList.toggle("off", off);
      });
    }

    figure.querySelectorAll(".holder").forEach((holder, i) => {
      const panel = data.panels[i];
      if (panel && panel.curves.length) readable(holder, panel, data, hidden);
    });
  }

  function readable(holder, panel, data, hidden) {
    const svg = holder.querySelector("svg");
    const [left, top, right, bottom] = panel.plot;
    const along = (value, [logarithmic, low, high], from, to) => {
      const f = logarithmic ? Math.log : (v) => v;
      return from + ((f(value) - f(low)) / (f(high) - f(low))) * (to - from);
    };
    const place = (series, k) => [
      along(series.x[k], panel.x, left, right),
      series.y[0][k] === null ? NaN : along(series.y[0][k], panel.y, bottom, top),
    ];
    const inside = ([x, y]) => x >= left - 1 && x <= right + 1 && y >= top - 1 && y <= bottom + 1;

    const words = document.createElement("p");
    words.className = "readout";
    words.setAttribute("role", "status");
    words.hidden = true;
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    dot.setAttribute("r", "4.5");
    dot.setAttribute("class", "dot");
    dot.style.display = "none";
    svg.append(dot);
    holder.append(words);
    holder.tabIndex = 0;
    holder.setAttribute("aria-label", "Chart; the arrow keys go along and between its curves");

    let shown = null; // the curve's place in panel.curves, and the point on it
    const points = (c) => {
      const series = data.series[panel.curves[c][1]];
      return series.x.map((_, k) => k).filter((k) => inside(place(series, k)));
    };
    const visible = () => panel.curves.map((_, c) => c).filter((c) => !hidden.has(panel.curves[c][0]) && points(c).length);

    function show(c, k) {
      const [curve, number] = panel.curves[c];
      const series = data.series[number];
      const [x, y] = place(series, k);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      dot.style.display = "";
      const [middle, low, high] = series.y.map((column) => column[k]);
      const name = document.createElement("strong");
      name.textContent = data.names[curve];
      const lines = [`${panel.across}: ${format(series.x[k])}`, `${series.says}: ${format(middle)}`];
      if (series.band && low !== undefined) lines.push(`${series.band}: ${format(low)} to ${format(high)}`);
      words.replaceChildren(name, ...lines.flatMap((line) => [document.createElement("br"), line]));
      words.hidden = false;
      const box = svg.getBoundingClientRect();
      const view = svg.viewBox.baseVal;
      const across = ((x - view.x) / view.width) * box.width;
      const down = ((y - view.y) / view.height) * box.height;
      const room = holder.clientWidth - words.offsetWidth;
      words.style.left = `${Math.max(0, Math.min(room, across - words.offsetWidth / 2))}px`;
      words.style.top = `${down - words.offsetHeight - 12 > 0 ? down - words.offsetHeight - 12 : down + 14}px`;
      shown = [c, k];
    }

    function hide() {
      words.hidden = true;
      dot.style.display = "none";
      shown = null;
    }

    function nearest(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      if (!inside([at.x, at.y])) return hide();
      let best = null;
      for (const c of visible()) {
        const series = data.series[panel.curves[c][1]];
        for (const k of points(c)) {
          const [x, y] = place(series, k);
          const distance = 4 * Math.abs(x - at.x) + Math.abs(y - at.y);
          if (!best || distance < best[0]) best = [distance, c, k];
        }
      }
      if (best) show(best[1], best[2]);
      else hide();
    }

    holder.addEventListener("pointermove", nearest);
    holder.addEventListener("pointerdown", nearest);
    holder.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") hide();
    });
    holder.addEventListener("blur", hide);
    holder.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const curves = visible();
      if (!step || !curves.length) return;
      event.preventDefault();
      if (!shown || !curves.includes(shown[0])) return show(curves[0], points(curves[0]).at(-1));
      const c = curves[(curves.indexOf(shown[0]) + step[0] + curves.length) % curves.length];
      const on = points(c);
      const here = on.reduce((a, b) => (Math.abs(b - shown[1]) < Math.abs(a - shown[1]) ? b : a));
      show(c, on[Math.max(0, Math.min(on.length - 1, on.indexOf(here) + step[1]))]);
    });
  }
})();
