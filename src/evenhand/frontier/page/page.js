// The page: controls, the list, the chosen setting. Everything on it follows from `state`.

var TOLD = JSON.parse(document.getElementById("frontier-data").textContent);
var T = TOLD.texts;
function $(id) { return document.getElementById(id); }
function make(tag, words, className) {
  var element = document.createElement(tag);
  if (words !== undefined) element.textContent = words; // never as HTML: names come from outside
  if (className) element.className = className;
  return element;
}
function many(n, noun) { return n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s"); }

var S = TOLD.settings, R = TOLD.runs, STYLES = JSON.parse($("method-styles").textContent);
var repeated = Boolean(R.epsilon);

// Both ways to look: settings with means over seeds, and their single runs.
function viewOf(columns, setting, runOf) {
  var n = setting.length;
  function take(list) { return setting.map(function (s) { return list[s]; }); }
  var view = {
    n: n, columns: readColumns(columns, n), setting: setting, runOf: runOf,
    method: take(S.method), kind: take(S.kind), front: take(S.front)
  };
  view.styles = STYLES;
  return view;
}
var firstRun = [];
R.setting.forEach(function (s, run) { if (firstRun[s] === undefined) firstRun[s] = run; });
var views = { settings: viewOf(S, S.method.map(function (_, i) { return i; }), firstRun) };
views.runs = repeated ? viewOf(R, R.setting, R.setting.map(function (_, i) { return i; })) : views.settings;

var FIRST_ROWS = 30;
var state = {
  view: views.settings, limits: { epsilon: null, gap: null, accuracy: null, coverage: null },
  strictly: false, kind: 0, off: {}, chosen: -1, hovered: -1, run: -1,
  sort: { by: "accuracy", down: true }, rows: FIRST_ROWS
};

// -- the charts

var charts = [];
document.querySelectorAll(".pair").forEach(function (holder) {
  charts.push(new Pair(holder, holder.dataset.x, holder.dataset.y));
});
charts.push(new Parallel($("parallel")));
var space = new Space($("space"));
charts.push(space);

// The marks of a view: which points are shown at all (kind and methods), which meet the limits.
function refilter() {
  var view = state.view, n = view.n, shown = new Uint8Array(n);
  for (var i = 0; i < n; i++) {
    shown[i] = view.kind[i] === state.kind && !state.off[view.method[i]] ? 1 : 0;
  }
  state.shown = shown;
  state.marks = new Uint8Array(n);
  var ofKind = {};
  OBJECTIVES.forEach(function (name) {
    ofKind[name] = view.columns[name].filter(function (_, i) { return view.kind[i] === state.kind; });
  });
  state.span = spans(ofKind);
  state.scales = {};
  state.ranges = {};
  OBJECTIVES.forEach(function (name) {
    state.scales[name] = scaleOf(name, ofKind[name]);
    state.ranges[name] = finiteRange(ofKind[name]);
  });
  charts.forEach(function (chart) { chart.prepare(state); });
  OBJECTIVES.forEach(function (name) { showLimit(name); }); // the sliders' range may be another
  update();
}

function update() {
  state.count = mark(state.view.columns, state.limits, state.strictly, state.shown, state.marks);
  redraw();
  tellCount();
  fillList();
}
// What can be seen is drawn at once; what cannot, when a moving slider has come to rest.
var unseen = [], rest = null;
function redraw() {
  unseen = charts.filter(function (chart) {
    var box = chart.holder.getBoundingClientRect();
    if (box.bottom > 0 && box.top < window.innerHeight) chart.draw(state);
    else return true;
  });
  clearTimeout(rest);
  if (unseen.length) rest = setTimeout(drawUnseen, 60);
}
function drawUnseen() {
  unseen.forEach(function (chart) { chart.draw(state); });
  unseen = [];
}

// Several events before the next frame are one job, the widest: `refilter` ends in `update`, and that
// in `redraw`.
var waiting = null, WIDTH = [redraw, update, refilter];
function soon(job) {
  if (waiting === null) requestAnimationFrame(function () { var todo = waiting; waiting = null; todo(); });
  if (WIDTH.indexOf(job) > WIDTH.indexOf(waiting)) waiting = job;
}

document.querySelectorAll("#methods canvas").forEach(function (swatch) {
  var style = STYLES[swatch.dataset.method], pen = swatch.getContext("2d");
  pen.scale(2, 2);
  outline(pen, style.shape, 8, 8, 5);
  pen.fillStyle = style.colour;
  pen.fill();
});

// -- the limits

var FINEST = 200;
var sliders = {};
OBJECTIVES.forEach(function (name) {
  var slider = $("slide-" + name), field = $("field-" + name);
  sliders[name] = { slider: slider, field: field };
  slider.addEventListener("input", function () {
    var share = LOWER[name] ? slider.value / FINEST : 1 - slider.value / FINEST;
    setLimit(name, share === 1 ? null : valueAt(name, share), "slider");
  });
  field.addEventListener("input", function () {
    var value = field.value.trim() === "" && !field.validity.badInput ? null : Number(field.value);
    var wrong = value !== null && (field.validity.badInput || !isFinite(value)
      || (name === "epsilon" ? value <= 0 : value < 0 || value > 1));
    $("wrong-" + name).textContent = !wrong ? "" : name === "epsilon"
      ? "Epsilon must be greater than 0." : "Give a number from 0 to 1.";
    field.setAttribute("aria-invalid", wrong ? "true" : "false");
    if (!wrong) setLimit(name, value, "field");
  });
});

// The strictest value at share 0, the loosest at share 1; epsilon in equal ratios.
function rangeOf(name) {
  var r = state.ranges[name];
  if (!r.any) return { strict: 1, loose: 1 };
  return LOWER[name] ? { strict: r.low, loose: r.high } : { strict: r.high, loose: r.low };
}
function valueAt(name, share) {
  var r = rangeOf(name), last = (FINEST - 1) / FINEST, part = Math.min(1, share / last);
  if (name === "epsilon") {
    return +(r.strict * Math.pow(r.loose / r.strict, part)).toPrecision(3);
  }
  return +(r.strict + part * (r.loose - r.strict)).toFixed(4);
}
function shareOf(name, value) {
  if (value === null) return 1;
  var r = rangeOf(name);
  if (r.loose === r.strict) return 0.5;
  var part = name === "epsilon" ? Math.log(value / r.strict) / Math.log(r.loose / r.strict)
    : (value - r.strict) / (r.loose - r.strict);
  return clamp(part, 0, 1) * (FINEST - 1) / FINEST;
}
function setLimit(name, value, from) {
  state.limits[name] = value;
  state.rows = FIRST_ROWS;
  showLimit(name, from);
  soon(update);
}
function showLimit(name, from) {
  var value = state.limits[name], pair = sliders[name], share = shareOf(name, value);
  if (from !== "slider") {
    pair.slider.value = Math.round(FINEST * (LOWER[name] ? share : 1 - share));
  }
  if (from !== "field") {
    pair.field.value = value === null ? "" : String(value);
    pair.field.setAttribute("aria-invalid", "false");
    $("wrong-" + name).textContent = "";
  }
  pair.slider.setAttribute("aria-valuetext", value === null ? "any"
    : (LOWER[name] ? "at most " : "at least ") + value);
  $("limit-" + name).classList.toggle("set", value !== null);
}
$("reset").addEventListener("click", function () {
  OBJECTIVES.forEach(function (name) { state.limits[name] = null; showLimit(name); });
  soon(update);
});
$("strictly").addEventListener("change", function () {
  state.strictly = this.checked;
  soon(update);
});
document.querySelectorAll("#methods input").forEach(function (box) {
  box.addEventListener("change", function () {
    state.off[Number(box.value)] = !box.checked;
    soon(refilter);
  });
});
if ($("kind")) {
  $("kind").addEventListener("change", function () {
    state.kind = Number(this.value);
    choose(-1);
    soon(refilter);
  });
}
document.querySelectorAll("input[name=view]").forEach(function (radio) {
  radio.addEventListener("change", function () {
    var setting = state.chosen < 0 ? -1 : state.view.setting[state.chosen], run = state.run;
    state.view = views[radio.value];
    state.hovered = -1;
    state.chosen = setting < 0 ? -1 : radio.value === "runs" ? run : setting;
    soon(refilter);
  });
});

// -- how many, and what comes nearest

function noun() { return state.view === views.settings ? "setting" : "run"; }
function nameOf(i) {
  var s = state.view.setting[i], name = T[S.method[s]], words = T[S.words[s]];
  return { method: name, words: words + (state.view === views.settings ? ""
    : (words ? ", " : "") + "seed " + R.seed[state.view.runOf[i]]) };
}
function tellCount() {
  var total = state.shown.reduce(function (sum, one) { return sum + one; }, 0);
  $("count").textContent = state.count.toLocaleString("en");
  $("count-words").textContent = "of " + many(total, noun()) + " meet" + (state.count === 1 ? "s" : "")
    + " the limits";
  var box = $("nothing");
  box.hidden = state.count > 0;
  box.textContent = "";
  if (state.count) return;
  box.appendChild(make("h3", "Nothing meets this."));
  if (!total) { box.appendChild(make("p", "No method is shown: tick one on the left.")); return; }
  var columns = state.view.columns;
  var i = nearest(columns, state.limits, state.strictly, state.shown, state.span);
  if (i < 0) {
    box.appendChild(make("p", "And nothing can be compared with these limits: what they ask about "
      + "is not defined, or not bounded, for any " + noun() + " that is shown."));
  } else {
    var who = nameOf(i), p = make("p", "The nearest is "), button = make("button", who.method
      + (who.words ? ": " + who.words : ""), "link");
    button.type = "button";
    button.id = "nearest";
    button.dataset.point = i;
    button.addEventListener("click", function () { choose(i); $("chosen-title").focus(); });
    p.appendChild(button);
    p.appendChild(make("span", ". For it to do, this would have to give:"));
    box.appendChild(p);
    var list = make("ul");
    OBJECTIVES.forEach(function (name) {
      var value = judged(columns, name, state.strictly)[i], limit = state.limits[name];
      if (shortfall(name, value, limit, 1) === 0) return;
      list.appendChild(make("li", LIMIT_WORDS[name] + " " + exactly(name, value) + " instead of " + limit));
    });
    box.appendChild(list);
  }
  var alone = reliefs(columns, state.limits, state.strictly, state.shown).filter(function (r) {
    return r.to !== null && isFinite(r.to);
  });
  if (alone.length) {
    box.appendChild(make("p", "Moving one limit alone, the others held:"));
    var ways = make("ul");
    alone.forEach(function (r) {
      var item = make("li"), button = make("button", LIMIT_WORDS[r.name] + " to "
        + exactly(r.name, r.to), "link");
      button.type = "button";
      button.addEventListener("click", function () { setLimit(r.name, r.to); });
      item.appendChild(button);
      ways.appendChild(item);
    });
    box.appendChild(ways);
  }
}
// A limit that is shown must still admit what it is shown for: all digits that the page knows.
function exactly(name, value) { return value === Infinity ? "none at all" : String(value); }

// -- the list

var COLUMNS = document.querySelectorAll("#list thead th").length;
var body = $("list").tBodies[0], pool = [];
document.querySelectorAll("#list thead button").forEach(function (button) {
  button.addEventListener("click", function () {
    var by = button.dataset.by, first = by === "accuracy" || by === "coverage" || by === "front";
    state.sort = { by: by, down: state.sort.by === by ? !state.sort.down : first };
    fillList();
  });
});
function keyOf(view, by, i) {
  if (by === "method") return T[view.method[i]];
  if (by === "words") return T[S.words[view.setting[i]]];
  if (by === "front") return probabilityOf(view, i);
  return view.columns[by][i];
}
function probabilityOf(view, i) {
  var probability = S.probability[view.setting[i]];
  return probability === null ? NaN : probability;
}
function sorted() {
  var view = state.view, by = state.sort.by, sign = state.sort.down ? -1 : 1, order = [];
  for (var i = 0; i < view.n; i++) if (state.marks[i]) order.push(i);
  var text = by === "method" || by === "words";
  var keys = order.length ? view.columns[by] : null;
  return order.sort(function (a, b) {
    var x = keys ? keys[a] : keyOf(view, by, a), y = keys ? keys[b] : keyOf(view, by, b);
    if (x !== x || y !== y) return (x !== x) - (y !== y) || a - b; // what is not defined comes last
    if (text) return sign * x.localeCompare(y, "en", { numeric: true }) || a - b;
    return x === y ? view.columns.accuracy[b] - view.columns.accuracy[a] || a - b : sign * (x < y ? -1 : 1);
  });
}
function put(element, words) { if (element.textContent !== words) element.textContent = words; }
// Ends that differ by rounding only, or are not known, are no interval to show.
function wide(low, high) { return high - low >= 0.0005; }
function withInterval(cell, name, i) {
  var C = state.view.columns, low = C[name + "_low"], high = C[name + "_high"];
  put(cell.firstChild, short(name, C[name][i]));
  put(cell.lastChild, wide(low[i], high[i]) ? " " + low[i].toFixed(3) + "–" + high[i].toFixed(3) : "");
}
// What an accuracy is read beside.
function besides(value) { return value === value ? short("accuracy", value) : "–"; }
function rowAt(k) {
  if (pool[k]) return pool[k];
  var row = make("tr"), head = make("th"), button = make("button", "", "pick");
  head.scope = "row";
  button.type = "button";
  head.appendChild(button);
  row.appendChild(head);
  for (var c = 1; c < COLUMNS; c++) {
    var cell = row.appendChild(make("td", "", c > 1 ? "number" : "words"));
    cell.appendChild(make("span"));
    cell.appendChild(make("small"));
  }
  body.appendChild(row);
  row.addEventListener("click", function () { choose(Number(row.dataset.point)); });
  row.addEventListener("mouseenter", function () { hover(Number(row.dataset.point)); });
  button.addEventListener("focus", function () { hover(Number(row.dataset.point)); });
  button.addEventListener("keydown", function (event) {
    var to = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: state.listed - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to >= 0 && to < state.listed) pool[to].querySelector("button").focus();
  });
  pool.push(row);
  return row;
}
function fillList() {
  var order = sorted(), view = state.view, n = Math.min(order.length, state.rows);
  state.listed = n;
  for (var k = 0; k < n; k++) {
    var row = rowAt(k), i = order[k], cells = row.children, who = nameOf(i), chosen = i === state.chosen;
    row.hidden = false;
    row.dataset.point = i;
    row.classList.toggle("chosen", chosen);
    var button = cells[0].firstChild;
    put(button, who.method);
    button.setAttribute("aria-pressed", chosen ? "true" : "false");
    put(cells[1].firstChild, who.words || "as it comes");
    put(cells[2].firstChild, short("epsilon", view.columns.epsilon[i]));
    withInterval(cells[3], "gap", i);
    withInterval(cells[4], "accuracy", i);
    put(cells[5].firstChild, besides(view.columns.majority[i]));
    put(cells[6].firstChild, besides(view.columns.free[i]));
    withInterval(cells[7], "coverage", i);
    var probability = probabilityOf(view, i);
    put(cells[8].firstChild, probability === probability ? Math.round(100 * probability) + " %" : "–");
  }
  for (; k < pool.length; k++) pool[k].hidden = true;
  $("list-words").textContent = order.length
    ? (n < order.length ? "The first " + n + " of " + many(order.length, noun()) : "All "
      + many(order.length, noun())) + " within the limits. Up and down keys move, Enter chooses."
    : "Nothing is within the limits.";
  $("more").hidden = n === order.length;
  $("more").textContent = "Show " + Math.min(100, order.length - n) + " more";
  $("list").parentNode.hidden = !order.length;
  document.querySelectorAll("#list thead th").forEach(function (cell) {
    var mine = cell.firstChild.dataset.by === state.sort.by;
    if (mine) cell.setAttribute("aria-sort", state.sort.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}
$("more").addEventListener("click", function () {
  var next = state.listed;
  state.rows += 100;
  fillList();
  pool[next].querySelector("button").focus();
});
body.addEventListener("mouseleave", function () { hover(-1); });
function hover(i) {
  if (state.hovered === i) return;
  state.hovered = i;
  soon(redraw);
}

// -- the chosen one

function choose(i) {
  state.chosen = i;
  state.run = i < 0 ? -1 : state.view.runOf[i];
  $("chosen-none").hidden = i >= 0;
  $("chosen-body").hidden = i < 0;
  for (var k = 0; k < state.listed; k++) {
    var mine = Number(pool[k].dataset.point) === i;
    pool[k].classList.toggle("chosen", mine);
    pool[k].querySelector("button").setAttribute("aria-pressed", mine ? "true" : "false");
  }
  $("chosen-short").hidden = i < 0;
  if (i >= 0) {
    var who = nameOf(i), setting = state.view.setting[i];
    $("chosen-short-words").textContent = who.method + (who.words ? ": " + who.words : "");
    $("chosen-title").textContent = who.method;
    $("chosen-words").textContent = who.words || "every argument as it comes";
    var seeds = $("seed"), runs = [];
    R.setting.forEach(function (s, run) { if (s === setting) runs.push(run); });
    seeds.textContent = "";
    runs.forEach(function (run) {
      var option = make("option", "seed " + R.seed[run]);
      option.value = run;
      seeds.appendChild(option);
    });
    seeds.value = state.run;
    $("seed-line").hidden = runs.length < 2;
    fillFigures(i);
    fillRun();
  }
  soon(redraw);
}
function deltaOf(run) {
  var delta = R.delta[run];
  return delta === null ? "that is not known" : delta < 0.001 ? delta.toExponential() : String(delta);
}
function fillFigures(i) {
  var C = state.view.columns, box = $("chosen-figures");
  box.textContent = "";
  OBJECTIVES.forEach(function (name) {
    var part = make("div"), low = C[name + "_low"];
    part.appendChild(make("dt", TITLES[name]));
    var value = make("dd");
    value.appendChild(make("span", said(name, C[name][i]), "figure"));
    var interval = low && wide(low[i], C[name + "_high"][i]);
    value.appendChild(make("span", interval ? "95 % interval " + low[i].toFixed(4) + " to "
      + C[name + "_high"][i].toFixed(4) : name === "epsilon"
      ? (C.epsilon[i] === Infinity ? "no bound" : "at delta " + deltaOf(state.run).replace("-", "\u2011")) : "", "note"));
    if (name === "accuracy" && C.majority[i] === C.majority[i]) {
      value.appendChild(make("span", "always the majority class: " + besides(C.majority[i])
        + (C.free[i] === C.free[i] ? "; without the margin: " + besides(C.free[i]) : "")
        + (C.accuracy_low[i] <= C.majority[i] ? ". No better than the majority class" : ""), "note"));
    }
    if (name === "gap" && C.disparity[i] === C.disparity[i]) {
      value.appendChild(make("span", "disparity of drawn groups: "
        + C.disparity[i].toFixed(4), "note"));
    }
    part.appendChild(value);
    box.appendChild(part);
  });
}
function fillRun() {
  var run = state.run, claim = T[R.claim[run]];
  $("claim").textContent = claim;
  $("claim").className = /^NOT PRIVATE/.test(claim) ? "void" : "";
  $("margin").textContent = T[R.margin[run]];
  $("measured-on").textContent = "Measured on " + T[R.measured_on[run]] + ". The model learned from "
    + { "private": "private rows", "public stand-in": "public stand-in rows",
        "synthetic stand-in": "synthetic stand-in rows", "published":
        "data of others, who published this point: it was not run here" }[T[R.learned_from[run]]] + ".";
  $("command").textContent = T[R.command[run]];
  $("copied").textContent = "";
  fillGroups(run);
}
function fillGroups(run) {
  var head = JSON.parse(T[R.table[run]]), names = head[0], sizes = head[1], rates = head[2];
  var cells = R.cells[run], table = $("groups");
  $("groups-none").hidden = names.length > 0;
  table.parentNode.hidden = !names.length;
  table.tHead.textContent = ""; table.tBodies[0].textContent = "";
  var top = table.tHead.appendChild(make("tr"));
  ["Group", "Rows"].concat(rates).forEach(function (name, k) {
    var cell = make("th", name.charAt(0).toUpperCase() + name.slice(1).replace(/_/g, " "), k ? "number" : "");
    cell.scope = "col";
    top.appendChild(cell);
  });
  names.forEach(function (name, g) {
    var row = table.tBodies[0].appendChild(make("tr")), first = make("th", name);
    first.scope = "row";
    row.appendChild(first);
    row.appendChild(make("td", sizes[g] === null ? "–" : sizes[g].toLocaleString("en"), "number"));
    rates.forEach(function (_, k) {
      var at = 3 * (g * rates.length + k), cell = row.appendChild(make("td", cells[at] === null
        ? "–" : cells[at].toFixed(4), "number"));
      if (cells[at + 1] !== null) {
        cell.appendChild(make("small", " " + cells[at + 1].toFixed(3) + "–" + cells[at + 2].toFixed(3)));
      }
    });
  });
}
$("seed").addEventListener("change", function () { state.run = Number(this.value); fillRun(); });
$("copy").addEventListener("click", function () {
  var words = $("command").textContent;
  function done() { $("copied").textContent = "Copied."; }
  function byHand() { // where a page from disk may not use the clipboard
    var range = document.createRange();
    range.selectNodeContents($("command"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (document.execCommand("copy")) done();
    else $("copied").textContent = "Selected: copy it with Ctrl+C.";
  }
  if (navigator.clipboard) navigator.clipboard.writeText(words).then(done, byHand);
  else byHand();
});

// -- pointer and keys on the charts

var tip = $("tip");
charts.forEach(function (chart) {
  var holder = chart.holder, from = null, moved = false;
  function under(event) {
    var box = holder.getBoundingClientRect();
    return chart.find(state, event.clientX - box.left, event.clientY - box.top);
  }
  holder.addEventListener("pointerdown", function (event) {
    moved = false;
    if (chart === space) { from = [event.clientX, event.clientY]; holder.setPointerCapture(event.pointerId); }
  });
  holder.addEventListener("pointermove", function (event) {
    if (from) {
      var dx = event.clientX - from[0], dy = event.clientY - from[1];
      if (moved || Math.abs(dx) + Math.abs(dy) > 3) {
        moved = true;
        turn(dx * 0.01, dy * 0.008);
        from = [event.clientX, event.clientY];
      }
      return;
    }
    var i = under(event);
    hover(i);
    tell(i, event);
  });
  holder.addEventListener("pointerup", function () { from = null; });
  holder.addEventListener("pointerleave", function () { hover(-1); tell(-1); });
  holder.addEventListener("click", function (event) {
    var i = under(event);
    if (!moved && i >= 0) choose(i);
  });
});
function turn(sideways, upwards) {
  space.turn += sideways;
  space.lift = clamp(space.lift + upwards, 0, 1.4);
  soon(redraw);
}
space.holder.addEventListener("keydown", function (event) {
  var by = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, 0.12], ArrowDown: [0, -0.12] }[event.key];
  if (!by) return;
  event.preventDefault();
  turn(by[0], by[1]);
});
function tell(i, event) {
  tip.hidden = i < 0;
  if (i < 0) return;
  var name = nameOf(i);
  tip.textContent = "";
  tip.appendChild(make("strong", name.method));
  tip.appendChild(make("span", name.words));
  tip.appendChild(make("span", OBJECTIVES.map(function (o) {
    return TITLES[o] + " " + short(o, state.view.columns[o][i]);
  }).join(" · ")));
  var left = event.clientX + 14, top = event.clientY + 14;
  if (left + tip.offsetWidth > window.innerWidth - 8) left = event.clientX - tip.offsetWidth - 10;
  if (top + tip.offsetHeight > window.innerHeight - 8) top = event.clientY - tip.offsetHeight - 10;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, top) + "px";
}

// -- size, paper, start

var size = "";
function refit() {
  var now = charts.map(function (c) { return c.holder.clientWidth + "x" + c.holder.clientHeight; }).join();
  if (now !== size) { size = now; charts.forEach(function (c) { c.prepare(state); }); redraw(); }
}
new ResizeObserver(function () { requestAnimationFrame(refit); }).observe($("views"));
window.addEventListener("beforeprint", function () { refit(); drawUnseen(); });
window.addEventListener("scroll", drawUnseen, { passive: true });
window.addEventListener("afterprint", refit);
document.documentElement.classList.add("ready");
refilter();
choose(-1);
