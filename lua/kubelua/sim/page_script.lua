-- page_script.lua - what moves on a report's page, as JavaScript: tables sort, a crosshair reads all charts
-- over time at once, and what can be explained opens its explanation. All of it works with the keyboard, too.

local M = {}

-- The hash of the text below, for the page's Content-Security-Policy (spec/lua/sim_page_spec.lua).
M.HASH = "sha256-0d58+1O8K8E+urguuQSO/63AO2HqHoX2ubT3zhfbEzQ="

M.TEXT = [[
"use strict";
const all = (what, of) => Array.from((of || document).querySelectorAll(what));

// A click on a column's head sorts by it.
const value = cell => cell.dataset.v || cell.textContent;
all("table.sorts").forEach(table => all("th button", table).forEach((button, column) => {
  let down = false;
  button.addEventListener("click", () => {
    down = !down;
    Array.from(table.tBodies[0].rows).sort((a, b) => {
      const x = value(a.cells[column]), y = value(b.cells[column]);
      const d = isNaN(x) || isNaN(y) ? String(x).localeCompare(String(y)) : x - y;
      return down ? d : -d;
    }).forEach(row => table.tBodies[0].appendChild(row));
  });
}));

// One moment, read from all charts over time. `now` is a share of the span, or null.
const charts = all("figure.time").map(figure => {
  const svg = figure.querySelector("svg"), line = document.createElementNS(svg.namespaceURI, "line");
  line.setAttribute("class", "cross");
  line.setAttribute("y1", 10);
  line.setAttribute("y2", svg.viewBox.baseVal.height - 26);
  return { figure, svg, line, read: figure.querySelector(".read"), left: +figure.dataset.left,
    right: +figure.dataset.right, seconds: +figure.dataset.seconds,
    data: JSON.parse(figure.querySelector("script").textContent) };
});
let now = null;
const number = x => Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3);
function cross(share) {
  now = share === null ? null : Math.min(1, Math.max(0, share));
  charts.forEach(c => {
    if (now === null) { c.line.remove(); c.read.textContent = ""; return; }
    const x = c.left + (c.right - c.left) * now, t = now * c.seconds;
    c.line.setAttribute("x1", x);
    c.line.setAttribute("x2", x);
    c.svg.appendChild(c.line);
    let at = c.data.times.findIndex(moment => moment > t);
    at = (at < 0 ? c.data.times.length : Math.max(at, 1)) - 1;
    c.read.textContent = (t / 3600).toFixed(1) + " h: " + c.data.series.map(s =>
      s.label + " " + number(s.values[at] || 0)).join(", ") + " " + c.figure.dataset.unit;
  });
}
charts.forEach(c => {
  c.svg.addEventListener("pointermove", event => {
    const box = c.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * c.svg.viewBox.baseVal.width;
    cross((x - c.left) / (c.right - c.left));
  });
  c.svg.addEventListener("pointerleave", () => cross(null));
  c.figure.addEventListener("focus", () => cross(now === null ? 0 : now));
  c.figure.addEventListener("blur", () => cross(null));
  c.figure.addEventListener("keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step) cross(now + step / Math.max(1, c.data.times.length));
    else if (event.key === "Home" || event.key === "End") cross(event.key === "Home" ? 0 : 1);
    else return;
    event.preventDefault();
  });
});

// What has an explanation opens it: the last one up to the moment, or the first.
const told = document.getElementById("told"), texts = told ? JSON.parse(told.textContent) : {};
const panel = document.getElementById("why");
let opener = null;
function explain(thing) {
  const list = texts[thing.dataset.why], at = +thing.dataset.at;
  const before = list.filter(one => one[0] <= at);
  panel.querySelector("pre").textContent = (before.length ? before[before.length - 1] : list[0])[1];
  opener = thing;
  if (!panel.open) panel.show();
}
function close() {
  panel.close();
  if (opener) (opener.closest("figure.pick") || opener).focus();
}
if (panel) {
  panel.querySelector("button").addEventListener("click", close);
  document.addEventListener("keydown", event => { if (event.key === "Escape" && panel.open) close(); });
  document.addEventListener("click", event => {
    const thing = event.target.closest("[data-why]");
    if (thing) explain(thing);
  });
}
all("figure.pick").forEach(figure => {
  const things = all("[data-why]", figure);
  let at = -1;
  const pick = to => {
    if (at >= 0) things[at].classList.remove("picked");
    at = Math.min(things.length - 1, Math.max(0, to));
    things[at].classList.add("picked");
  };
  figure.addEventListener("focus", () => pick(at));
  figure.addEventListener("blur", () => { if (at >= 0) things[at].classList.remove("picked"); });
  figure.addEventListener("click", event => pick(things.indexOf(event.target.closest("[data-why]"))));
  figure.addEventListener("keydown", event => {
    const row = +figure.dataset.columns;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row }[event.key];
    if (step) { if (things[at + step]) pick(at + step); }
    else if (event.key === "Enter" || event.key === " ") explain(things[at]);
    else return;
    event.preventDefault();
  });
});
]]

return M
