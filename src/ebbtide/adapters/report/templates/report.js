"use strict";
// Reads out the numbers under the pointer. The page says all of them without it.
(() => {
  const number = (value) => (value < 100 ? Math.round(value * 10) / 10 : Math.round(value)).toLocaleString("en-US");
  const clock = (data, minute) => {
    const day = data.days.length ? data.days[Math.floor(minute / 1440)] + " " : "";
    const two = (part) => String(part).padStart(2, "0");
    return day + two(Math.floor(minute / 60) % 24) + ":" + two(minute % 60);
  };
  const sentence = (data, minute) => {
    let i = data.edges.findIndex((edge) => edge > minute) - 1;
    if (i < 0) i = data.production.length - 1;
    const parts = [clock(data, minute), `production ${number(data.production[i])} GPUs`];
    if (data.moving[i]) parts.push(`moving ${number(data.moving[i])}`);
    parts.push(`research ${number(data.research[i] + data.reserved)}`);
    const bin = data.bin ? Math.floor(minute / data.bin) : -1;
    if (bin >= 0 && data.median[bin] !== null) {
      const range = `${number(data.low[bin])} to ${number(data.high[bin])}`;
      parts.push(`busy ${number(data.median[bin])} at the median (past: ${range})`);
    }
    return parts.join(" · ");
  };
  for (const figure of document.querySelectorAll("figure[data-readout]")) {
    const data = JSON.parse(figure.dataset.readout);
    const out = figure.querySelector(".readout");
    const idle = out.textContent;
    for (const svg of figure.querySelectorAll("svg[data-left]")) {
      const cursor = svg.querySelector(".cursor");
      const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
      svg.addEventListener("pointermove", (event) => {
        const box = svg.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
        if (x < left || x >= right) return;
        const minute = Math.floor((((x - left) / (right - left)) * data.cycle) / 5) * 5;
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        cursor.style.visibility = "visible";
        out.textContent = sentence(data, minute);
      });
      svg.addEventListener("pointerleave", () => {
        cursor.style.visibility = "hidden";
        out.textContent = idle;
      });
    }
  }
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
