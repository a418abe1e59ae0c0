// app.js - the dashboard: draws server-sent events, and sends the user's actions to the control API.
//
// Every word from the cluster is set as text, never as markup.

const $ = id => document.getElementById(id);

// ---------------------------------------------------------------- nodes

// Escapes control characters, and those that change the order of letters: "\u202e". Tabs and line ends
// stay.
const plain = text => text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f]/g, c =>
  c === "\x1b" ? "^[" : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

// el("li", { class: "x", onclick: f }, "text", node, ...): strings become text, as `plain` has it.
function el(tag, props, ...children) {
  const svg = ["svg", "rect", "line", "text", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      (node.does ??= {})[name] = value;
      node.addEventListener(name.slice(2), e => node.does[name]?.(e));
    }
    else node.setAttribute(name, value === true ? "" : plain(String(value)));
  }
  node.append(...children.flat().filter(c => c !== undefined && c !== null && c !== false)
    .map(c => typeof c === "string" ? plain(c) : c));
  return node;
}

// Makes the children of `parent` those of `items`, by key: a node stays as long as its key does, so that the
// focus stays. draw(item) returns a fresh node, whose differences the old one takes over. Items with equal
// keys are matched in order.
function keyed(parent, items, keyOf, draw) {
  const old = new Map([...parent.children].map(c => [c.dataset.key, c])), times = new Map();
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = keyOf(item), n = times.get(name) ?? 0, key = n ? `${name} ${n}` : name;
    times.set(name, n + 1);
    const fresh = draw(item);
    fresh.dataset.key = key;
    let node = old.get(key);
    old.delete(key);
    if (!node) {
      node = fresh;
      parent.insertBefore(node, at);
    } else {
      if (node !== at) parent.insertBefore(node, at);
      else at = at.nextElementSibling;
      update(node, fresh);
    }
  }
  for (const gone of old.values()) gone.remove();
}

// Makes `node` equal to `fresh` in contents and behaviour. Nodes of the same shape are not moved, so the
// focus stays.
function update(node, fresh) {
  if (node.does) node.does = fresh.does ?? {};
  const a = [...node.childNodes], b = [...fresh.childNodes];
  if (a.length !== b.length || a.some((c, i) => c.nodeName !== b[i].nodeName)) {
    const focus = node.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
    node.replaceChildren(...b);
    if (focus) node.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  } else {
    a.forEach((c, i) => {
      if (c.nodeType !== Node.TEXT_NODE) update(c, b[i]);
      else if (c.data !== b[i].data) c.data = b[i].data;
    });
  }
  for (const { name, value } of [...fresh.attributes])
    if (name !== "open" && node.getAttribute(name) !== value) node.setAttribute(name, value);
  for (const { name } of [...node.attributes])
    if (name !== "open" && !fresh.hasAttribute(name)) node.removeAttribute(name);
}

// ---------------------------------------------------------------- figures

const number = new Intl.NumberFormat("en");
const count = n => number.format(n ?? 0);

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

function span(s) {
  if (s === undefined || s === null) return "";
  if (s < 1e-3) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${Math.round(s * 1e3)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return `${Math.round(s / 3600)} h`;
}

const percent = (part, of) => !of ? "" : part && part / of < 0.01 ? "< 1 %"
  : `${Math.round(100 * part / of)} %`;

// The bound under which a share of what was observed lies.
function quantile(h, q) {
  const all = h.in.reduce((a, b) => a + b, 0);
  let sum = 0;
  for (let i = 0; i < h.in.length; i++) {
    sum += h.in[i];
    if (all && sum >= q * all) return h.le[i];
  }
}

function quantileText(h, q) {
  const bound = quantile(h, q);
  return bound === undefined ? `> ${span(h.le.at(-1))}` : `≤ ${span(bound)}`;
}

// A bar for each bucket from the first to the last that has something.
function histogram(what, h) {
  const all = h.in.reduce((a, b) => a + b, 0);
  if (!all) return el("p", { class: "dim" }, `${what}: nothing yet`);
  const first = h.in.findIndex(n => n), last = h.in.length - 1 - [...h.in].reverse().findIndex(n => n);
  const shown = h.in.slice(first, last + 1), most = Math.max(...shown), width = 300, height = 44,
    step = width / Math.max(shown.length, 8);
  const label = `${what}: half ${quantileText(h, 0.5)}, 99 % ${quantileText(h, 0.99)}, ${count(all)} in all`;
  const name = i => h.le[first + i] === undefined ? `> ${span(h.le.at(-1))}` : `≤ ${span(h.le[first + i])}`;
  return el("figure", { class: "histogram" },
    el("figcaption", { class: "dim" }, label),
    el("svg", { viewBox: `0 0 ${width} ${height + 12}`, role: "img", "aria-label": label },
      el("line", { x1: 0, x2: width, y1: height, y2: height }),
      shown.map((n, i) => {
        const tall = n ? Math.max(1, height * n / most) : 0;
        return el("rect", { x: i * step + 1, y: height - tall, width: Math.max(1, step - 2), height: tall },
          el("title", null, `${name(i)}: ${count(n)}`));
      }),
      el("text", { x: 0, y: height + 10 }, name(0)),
      shown.length > 1 && el("text",
        { x: Math.min(width, shown.length * step), y: height + 10, "text-anchor": "end" },
        name(shown.length - 1))));
}

// ---------------------------------------------------------------- what is shown

let snapshot, before, heard = 0, token = "";

// How much a figure grew in a second, between the last two pictures.
function rate(now, then) {
  const seconds = before ? snapshot.now - before.now : 0;
  return then === undefined || seconds <= 0 ? undefined : Math.max(0, now - then) / seconds;
}

const rateText = r => r === undefined ? "" : r >= 10 ? count(Math.round(r)) : r.toFixed(1);
const old = (list, name, key) => before?.[list]?.find(x => x[key] === name);

function paramText([name, value]) {
  return `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`;
}

function figure(label, value, bad) {
  return [el("dt", null, label), el("dd", { class: bad && "bad" }, String(value))];
}

const openCards = new Set();
const kindOf = controller => snapshot.controllers.find(c => c.name === controller)?.resource ?? "";

function controllerCard(c) {
  const then = old("controllers", c.name, "name");
  const [present] = c.generations ?? [];
  const paused = c.state === "paused";
  return el("article", { class: "card", tabindex: 0, "data-item": true, "data-focus": `c ${c.name}`,
    "aria-label": `controller ${c.name}` },
    el("header", null, el("h3", null, c.name),
      el("span", { class: `state ${c.state.split(" ")[0]}` }, c.state),
      el("span", { class: "dim" }, c.resource ?? "")),
    c.message && el("p", { class: "message" }, c.message),
    c.params && el("p", { class: "params dim" }, "params ",
      el("code", null, Object.entries(c.params).map(paramText).join(" "))),
    el("dl", { class: "figures" },
      figure("generation", c.generation), figure("runs/s", rateText(rate(c.runs, then?.runs))),
      figure("errors", present ? percent(present.errors, present.runs) || "0 %" : "", present?.errors),
      figure("failing", count(c.queue.failing), c.queue.failing)),
    el("dl", { class: "figures" },
      figure("ready", count(c.queue.ready)), figure("delayed", count(c.queue.delayed)),
      figure("running", count(c.queue.running)), figure("runs", count(c.runs))),
    el("details", { ontoggle: e => e.target.open ? openCards.add(c.name) : openCards.delete(c.name),
      open: openCards.has(c.name) },
      el("summary", { "data-focus": `d ${c.name}` }, "Latency and generations"),
      c.latency && histogram("A run takes", c.latency), c.waited && histogram("A key waits", c.waited),
      el("table", { class: "generations" },
        el("thead", null, el("tr", null, el("th", { scope: "col" }, "Generation"),
          ["Runs", "Errors", "Writes"].map(t => el("th", { scope: "col", class: "n" }, t)))),
        el("tbody", null, (c.generations ?? []).map(g => el("tr", null,
          el("th", { scope: "row" }, String(g.generation)),
          el("td", { class: "n", "data-label": "Runs" }, count(g.runs)),
          el("td", { class: "n", "data-label": "Errors" },
            g.errors ? `${count(g.errors)} (${percent(g.errors, g.runs)})` : "0"),
          el("td", { class: "n", "data-label": "Writes" }, count(g.writes))))))),
    token && el("p", null,
      el("button", { type: "button", class: "act", "data-focus": `p ${c.name}`,
        onclick: () => change(paused ? "resume" : "pause", { controller: c.name }) },
        paused ? "Resume" : "Pause")));
}

function failingRow(f) {
  const when = f.in === undefined ? "waits for a change" : f.in < 0.001 ? "about to come back"
    : `again in ${span(f.in)}`;
  return el("li", null,
    el("button", { type: "button", "data-item": true, "data-focus": `f ${f.controller} ${f.key}`,
      "aria-label": `Why ${f.key} of ${f.controller}`, onclick: () => askWhy(kindOf(f.controller), f.key) },
      f.key),
    el("span", { class: "dim" }, f.controller),
    el("span", { class: "result" }, `${f.result}, attempt ${f.attempt}`),
    el("span", { class: "dim" }, when),
    f.message && el("pre", null, f.message));
}

function informerRow(i) {
  const key = informerKey(i), then = before?.informers?.find(x => informerKey(x) === key);
  const cell = (label, text) => el("td", { class: "n", "data-label": label }, text);
  return el("tr", null, el("th", { scope: "row" }, i.cluster ? `${i.cluster}: ${i.kind}` : i.kind),
    el("td", { "data-label": "State" },
      el("span", { class: `state ${i.parked ? "parked" : i.synced ? "running" : ""}` },
        i.parked ? "parked" : i.state),
      i.message && el("div", { class: "message" }, i.message)),
    cell("Objects", count(i.objects)), cell("Bytes", bytes(i.bytes ?? 0)),
    cell("Events/s", rateText(rate(i.events, then?.events))),
    cell("Last heard", i.lagSeconds === undefined ? "" : i.lagSeconds < 1 ? "now"
      : `${span(Math.floor(i.lagSeconds))} ago`),
    cell("Relists", count(i.relists)));
}

const informerKey = i => `${i.cluster ?? ""} ${i.kind}`;

// One row for each series; of a histogram the mean, and how often it was observed.
const seriesOf = s =>
  (s?.metrics ?? []).flatMap(m => [...m.series.map((x, i) => ({ ...x, m, first: i === 0 })),
  ...m.total > m.series.length ? [{ m, labels: `and ${count(m.total - m.series.length)} more` }] : []]);
const seriesKey = x => `${x.m.cluster ?? ""} ${x.m.name} ${x.labels}`;

// `then` is the same series as it was in the picture before.
function seriesRow(x, then) {
  const grows = x.m.type !== "gauge";
  const value = x.count === undefined ? x.value : x.count && x.value / x.count, often = x.count ?? x.value;
  const cell = (label, text) => el("td", { class: "n", "data-label": label }, text);
  return el("tr", null,
    el("th", { scope: "row", title: x.m.help },
      x.first ? [x.m.cluster && `${x.m.cluster}: `, x.m.name] : "",
      x.first && x.m.dropped
        ? el("div", { class: "message" }, `${count(x.m.dropped)} dropped: too many series`)
        : ""),
    el("td", { "data-label": "Labels" }, el("code", null, x.labels)),
    cell("Value", x.value === undefined ? ""
      : `${x.count === undefined ? "" : "mean "}${Number(value.toPrecision(6)).toLocaleString("en")}`),
    cell("A second", grows && x.value !== undefined ? rateText(rate(often, then?.count ?? then?.value))
      : ""));
}

const RESULTS = { taken: "taken", refused: "refused", rolled_back: "taken back", withdrawn: "withdrawn" };

function reloadRow(r) {
  return el("li", null, el("time", { class: "dim", datetime: r.time }, new Date(r.time).toLocaleTimeString()),
    el("span", { class: `result ${r.result}` }, RESULTS[r.result] ?? r.result),
    el("span", { class: "grow" }, r.script), el("span", { class: "dim" }, `generation ${r.generation}`),
    r.message && el("pre", null, r.message));
}

function drawRefusal() {
  const last = snapshot.reloads.find((r, i, all) => all.findIndex(x => x.script === r.script) === i
    && ["refused", "rolled_back"].includes(r.result));
  const is = Boolean(last);
  $("refused").hidden = !is;
  const lines = is ? [el("strong", null,
    last.result === "refused" ? "The new script was refused. " : "The new generation was rolled back. "),
    `${last.script}: generation ${last.generation} runs.`, el("pre", null, last.message ?? "")] : [];
  update($("refused"), el("div", { id: "refused", role: "alert", hidden: !is }, lines));
}

function draw() {
  const s = snapshot;
  keyed($("controller-cards"), s.controllers, c => c.name, controllerCard);
  keyed($("failing-rows"), s.failing, f => `${f.controller} ${f.key}`, failingRow);
  $("failing-count").textContent = s.failingCount ? count(s.failingCount) : "";
  keyed($("informer-rows"), s.informers, informerKey, informerRow);
  $("metrics").hidden = !s.metrics?.length;
  const earlier = new Map(seriesOf(before).map(x => [seriesKey(x), x]));
  keyed($("metric-rows"), seriesOf(s), seriesKey, x => seriesRow(x, earlier.get(seriesKey(x))));
  keyed($("reload-rows"), s.reloads, r => `${r.time} ${r.script} ${r.generation} ${r.result}`, reloadRow);
  const kinds = new Set([...s.controllers.map(c => c.resource), ...s.informers.map(i => i.kind)]);
  keyed($("kinds"), [...kinds].filter(Boolean), k => k, k => el("option", { value: k }));
  for (const list of ["failing", "reload"]) {
    const rows = $(`${list}-rows`);
    rows.previousElementSibling.hidden = rows.children.length > 0;
  }
  $("reload-now").hidden = !token;
  drawRefusal();
}

// ---------------------------------------------------------------- shadow

function drawShadow(shadow) {
  $("shadow").hidden = $("shadow-link").hidden = !shadow;
  if (!shadow) return;
  const body = el("div", { id: "shadow-body" },
    el("p", null, el("strong", null,
      `${count(shadow.same)} same, ${count(shadow.differs)} differ, ${count(shadow.fails)} fail`),
      ` (${count(shadow.runs)} runs)`),
    el("p", { class: "dim" }, `${shadow.candidate} in the shadow of ${shadow.script}`,
      shadow.state === "following" ? "" : `: ${shadow.state}`),
    el("ul", { class: "rows" }, (shadow.keys ?? []).map(k => el("li", null,
      el("button", { type: "button", "data-item": true, "data-focus": `s ${k.controller} ${k.key}`,
        onclick: () => askWhy(kindOf(k.controller), k.key) }, k.key),
      el("span", { class: "dim" }, k.controller),
      el("span", { class: `result ${k.verdict === "fails" ? "refused" : ""}` }, k.verdict),
      k.diff && el("pre", null, k.diff)))),
    token && el("p", null, el("button", { type: "button", class: "act", "data-focus": "promote",
      onclick: () => change("shadow/promote", {}) }, "Promote")));
  update($("shadow-body"), body);
}

// ---------------------------------------------------------------- asking

async function call(method, target, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(target,
    { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(value.error ?? `${answer.status} ${answer.statusText}`),
    { code: answer.status });
  return value;
}

async function change(what, body) {
  try {
    await call("POST", `v1/${what}`, body);
    tell(`${what} ${body.controller ?? ""}: done`);
  } catch (e) {
    tell(`${what}: ${e.message}`);
  }
}

function tell(text) { $("told").textContent = plain(text); }

let asked;

function askWhy(kind, key) {
  $("why-kind").value = kind;
  $("why-key").value = key;
  $("why").scrollIntoView();
  $("why-key").focus({ preventScroll: true });
  asked = { kind, key };
  return showWhy();
}

const ago = s => s < 1 ? "just now" : `${span(s)} ago`;

// "v1/Secret team/a at 812", "team/a", "resync": what woke a run.
function triggerText(t) {
  if (!t) return "";
  const object = [t.kind, t.key].filter(Boolean).join(" ");
  return [t.reason, object, t.resourceVersion && `at version ${t.resourceVersion}`,
    t.events > 1 && `(${count(t.events)} events)`].filter(Boolean).join(" ");
}

function stepText(s) {
  const version = s.resourceVersion ? ` at version ${s.resourceVersion}` : ": not there";
  if (s.get) return `read ${s.get} ${s.key}${version}`;
  if (s.list) {
    const terms = [s.namespace && ` in ${s.namespace}`, s.labels && ` with ${s.labels}`,
      s.fields && ` where ${s.fields}`, s.index && ` by ${s.index}=${s.value ?? ""}`];
    return `list ${s.list}${terms.filter(Boolean).join("")}: ${count(s.count)} found`;
  }
  const what = [s.call, s.kind, s.key, s.subresource && `(${s.subresource})`].filter(Boolean).join(" ");
  return `${what}${s.code ? `: ${s.code}` : ""}${s.error ? ` ${s.error}` : ""} in ${span(s.took ?? 0)}`;
}

// Of one run; what the run after it (the one before it in the list) says as well is not said twice.
function runNode(r, i, all) {
  const next = i || !(r.in > 0) ? "" : `; again in ${span(r.in)}`,
    again = i && all[i - 1].message === r.message;
  return el("article", { class: "run" },
    el("p", null, el("strong", null, ago(r.ago)),
      ` for ${span(r.took ?? 0)}, generation ${r.generation}, attempt ${r.attempt}: `,
      el("span", { class: r.result === "error" || r.result === "fail" ? "why-bad" : "" }, r.result), next),
    r.trigger && el("p", { class: "dim" }, `woken by ${triggerText(r.trigger)}`),
    (r.steps ?? []).length > 0 && el("ul", null, r.steps.map(s => el("li", null, stepText(s)))),
    r.message && el("pre", null, r.message),
    r.traceback && !again && el("pre", { class: "dim" }, r.traceback));
}

function storyNode(c) {
  return el("section", { class: "story" },
    el("h3", null, `${c.cluster ? `${c.cluster}/` : ""}${c.controller}`,
      el("span", { class: "dim" }, ` ${c.role ?? ""} ${c.key ?? ""}`)),
    c.says && el("p", null, c.says),
    c.dropped && el("p", { class: "dim" },
      `its last event, ${ago(c.dropped.ago)}, triggered no run: ${c.dropped.by}`),
    (c.runs ?? []).map(runNode));
}

async function showWhy() {
  if (!asked) return;
  const query = new URLSearchParams({ kind: asked.kind, key: asked.key });
  let nodes;
  try {
    const answer = await call("GET", `v1/why?${query}`);
    nodes = answer.controllers.map(storyNode);
  } catch (e) {
    nodes = [el("p", { class: "why-bad" }, e.message)];
  }
  update($("why-answer"), el("div", { id: "why-answer", "aria-live": "polite" }, nodes));
}

$("why-form").addEventListener("submit", e => {
  e.preventDefault();
  asked = { kind: $("why-kind").value.trim(), key: $("why-key").value.trim() };
  showWhy();
});

$("token-form").addEventListener("submit", async e => {
  e.preventDefault();
  token = $("token").value;
  try {
    await call("GET", "v1/token");
    $("token-state").textContent = "changes are allowed";
  } catch (error) {
    token = "";
    $("token-state").textContent = plain(error.message);
  }
  if (snapshot) draw();
});

// ---------------------------------------------------------------- the keyboard

const SECTIONS = ["controllers", "failing", "informers", "reloads", "shadow", "why"];

function goTo(id) {
  const section = $(id);
  if (section.hidden) return;
  section.scrollIntoView();
  (section.querySelector("[data-item]") ?? section).focus({ preventScroll: true });
}

function step(by) {
  const items = [...document.querySelectorAll("[data-item]")];
  const at = items.findIndex(i => i.contains(document.activeElement));
  items[Math.min(items.length - 1, Math.max(0, at + by))]?.focus();
}

$("reload-now").addEventListener("click", () => change("reload", {}));
$("help-button").addEventListener("click", () => $("help").showModal());

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.altKey || e.metaKey || e.target.matches("input") || $("help").open) return;
  const section = SECTIONS[Number(e.key) - 1];
  if (section) goTo(section);
  else if (e.key === "j") step(1);
  else if (e.key === "k") step(-1);
  else if (e.key === "/") { $("why").scrollIntoView(); $("why-kind").focus({ preventScroll: true }); }
  else if (e.key === "?") $("help").showModal();
  else if (e.key === "Enter" && e.target.matches("article[data-item]")) {
    const d = e.target.querySelector("details");
    d.open = !d.open;
  }
  else return;
  e.preventDefault();
});

// ---------------------------------------------------------------- the stream

function lostText() {
  return `connection lost; this is ${span(Math.round((Date.now() - heard) / 1000))} old`;
}

function connection(text, lost) {
  if ($("connection").textContent !== text) $("connection").textContent = text;
  $("connection").classList.toggle("lost", Boolean(lost));
}

let routes = new Set();

// 403: no token would allow anything, so that none is asked for.
async function lookForToken() {
  const code = await call("GET", "v1/token").then(() => 200, e => e.code);
  for (const part of document.querySelectorAll("#token-form label, #token-form button"))
    part.hidden = code === 403;
}

// Who runs, and what it can be asked: both are others when the process was started anew.
async function introduce() {
  await lookForToken();
  const about = await call("GET", "v1/").catch(() => undefined);
  if (!about) return;
  routes = new Set(about.routes.map(r => r.path));
  const words = [`${about.version} pid ${about.pid}`, ...(about.scripts ?? [])];
  $("process").textContent = plain(words.join(", "));
}

async function lookAtShadow() {
  if (routes.has("/v1/shadow")) drawShadow(await call("GET", "v1/shadow").catch(() => undefined));
}

function listen() {
  const source = new EventSource("v1/events");
  source.addEventListener("open", introduce);
  source.addEventListener("snapshot", e => {
    before = snapshot;
    snapshot = JSON.parse(e.data);
    heard = Date.now();
    connection("live");
    draw();
    showWhy();
    lookAtShadow();
  });
  source.addEventListener("error", () => {
    connection(heard ? lostText() : "no connection", true);
    // the request was rejected; the browser does not try again
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 1000);
  });
}

setInterval(() => {
  if ($("connection").classList.contains("lost") && heard) connection(lostText(), true);
}, 1000);

listen();
