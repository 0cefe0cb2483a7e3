// The linked views. Each has a still layer (axes) and a moving one (marks, limits, the chosen one).

var INK = "#1f2933", SOFT = "#52606d", GRID = "#e4e7eb", LIMIT = "#B3261E", FAINT = "#cdd3d9";
var OUTSIDE = "rgba(82, 96, 109, 0.09)";
var FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";
var MOST_LINES = 300, MOST_INTERVALS = 40;

function Layer(holder) {
  this.canvas = document.createElement("canvas");
  this.canvas.setAttribute("aria-hidden", "true");
  holder.appendChild(this.canvas);
}
Layer.prototype.fit = function (width, height, ratio) {
  this.canvas.width = Math.round(width * ratio);
  this.canvas.height = Math.round(height * ratio);
  this.pen = this.canvas.getContext("2d");
  this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  this.pen.font = FONT;
};
Layer.prototype.show = function (sheet, ratio) {
  this.pen.putImageData(sheet.image, 0, 0);
  this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
};

// A view that is a rectangle with two layers; `draw` is called with the state of the page.
function Chart(holder) {
  this.holder = holder;
  this.still = new Layer(holder);
  this.moving = new Layer(holder);
}
Chart.prototype.fit = function () {
  this.ratio = Math.min(2, window.devicePixelRatio || 1);
  this.width = Math.max(120, this.holder.clientWidth);
  this.height = Math.max(120, this.holder.clientHeight);
  this.still.fit(this.width, this.height, this.ratio);
  this.moving.fit(this.width, this.height, this.ratio);
};
Chart.prototype.sheet = function () {
  return new Sheet(this.moving.pen, this.moving.canvas.width, this.moving.canvas.height);
};

// -- pairs of objectives

function Pair(holder, x, y) {
  Chart.call(this, holder);
  this.x = x; this.y = y;
}
Pair.prototype = Object.create(Chart.prototype);

// Axes, and every shown point in grey: what does not change while a limit moves.
Pair.prototype.prepare = function (state) {
  this.fit();
  var pen = this.still.pen, view = state.view, box = this.box = {
    left: 46, right: this.width - 10, top: 8, bottom: this.height - 36
  };
  this.xs = state.scales[this.x];
  this.ys = state.scales[this.y];
  pen.clearRect(0, 0, this.width, this.height);
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  var self = this;
  this.ys.ticks.forEach(function (t) {
    var v = self.down(t);
    line(pen, box.left, v, box.right, v, GRID);
    pen.fillStyle = SOFT; pen.textAlign = "right";
    pen.fillText(self.ys.label(t), box.left - 6, v);
  });
  this.xs.ticks.forEach(function (t) {
    var u = self.across(t);
    line(pen, u, box.top, u, box.bottom, GRID);
    pen.fillStyle = SOFT; pen.textAlign = "center";
    pen.fillText(self.xs.label(t), u, box.bottom + 11);
  });
  line(pen, box.left, box.bottom, box.right, box.bottom, SOFT);
  pen.fillStyle = SOFT; pen.textAlign = "center";
  pen.fillText(TITLES[this.x] + (this.x === "epsilon" ? " (log scale)" : ""),
    (box.left + box.right) / 2, this.height - 8);

  var n = view.n, xs = this.px = new Float32Array(n), ys = this.py = new Float32Array(n);
  var dot = stampOf("circle", FAINT, null, 1.7, this.ratio);
  this.faded = this.sheet();
  this.pressed = this.sheet();
  for (var i = 0; i < n; i++) {
    xs[i] = this.across(view.columns[this.x][i]);
    ys[i] = this.down(view.columns[this.y][i]);
    if (state.shown[i] && xs[i] === xs[i] && ys[i] === ys[i]) {
      this.faded.press(dot, xs[i] * this.ratio, ys[i] * this.ratio);
    }
  }
  this.stairs = staircase(view, state.shown, this.x, this.y);
};
Pair.prototype.across = function (v) {
  return this.box.left + this.xs.at(v) * (this.box.right - this.box.left);
};
Pair.prototype.down = function (v) {
  return this.box.bottom - this.ys.at(v) * (this.box.bottom - this.box.top);
};
Pair.prototype.draw = function (state) {
  var sheet = this.pressed, view = state.view, ratio = this.ratio, self = this, box = this.box;
  var stamps = marksOf(state, ratio);
  sheet.clear(this.faded);
  [0, 1].forEach(function (front) { // what is on the front comes last, on top
    for (var i = 0; i < view.n; i++) {
      if (!state.marks[i] || view.front[i] !== front) continue;
      var u = self.px[i], v = self.py[i];
      if (u !== u || v !== v) continue;
      sheet.press(stamps[2 * view.method[i] + front], u * ratio, v * ratio);
    }
  });
  var layer = this.moving, pen = layer.pen;
  layer.show(sheet, ratio);
  [["x", this.x], ["y", this.y]].forEach(function (axis) {
    var limit = state.limits[axis[1]];
    if (limit === null) return;
    var at = axis[0] === "x" ? self.across(limit) : self.down(limit);
    at = axis[0] === "x" ? clamp(at, box.left, box.right) : clamp(at, box.top, box.bottom);
    pen.fillStyle = OUTSIDE;
    if (axis[0] === "x") {
      if (LOWER[axis[1]]) pen.fillRect(at, box.top, box.right - at, box.bottom - box.top);
      else pen.fillRect(box.left, box.top, at - box.left, box.bottom - box.top);
      line(pen, at, box.top, at, box.bottom, LIMIT, [5, 3]);
    } else {
      if (LOWER[axis[1]]) pen.fillRect(box.left, box.top, box.right - box.left, at - box.top);
      else pen.fillRect(box.left, at, box.right - box.left, box.bottom - at);
      line(pen, box.left, at, box.right, at, LIMIT, [5, 3]);
    }
  });
  this.drawStairs(pen);
  var drawn = 0;
  for (var i = 0; i < view.n && drawn < MOST_INTERVALS; i++) {
    if (state.marks[i] && view.front[i]) { this.interval(pen, view, i, 0.55); drawn++; }
  }
  [state.hovered, state.chosen].forEach(function (i, order) {
    if (i < 0 || self.px[i] !== self.px[i] || self.py[i] !== self.py[i]) return;
    self.interval(pen, view, i, 1);
    halo(pen, self.px[i], self.py[i], order ? INK : SOFT, order ? 8 : 7);
  });
};
Pair.prototype.drawStairs = function (pen) {
  var self = this;
  if (this.stairs.length < 2) return;
  pen.beginPath();
  this.stairs.forEach(function (p, k) {
    var u = self.across(p[0]), v = self.down(p[1]);
    if (!k) { pen.moveTo(u, v); return; }
    pen.lineTo(u, self.down(self.stairs[k - 1][1]));
    pen.lineTo(u, v);
  });
  pen.strokeStyle = INK; pen.lineWidth = 1.1; pen.setLineDash([]);
  pen.stroke();
};
Pair.prototype.interval = function (pen, view, i, strength) {
  var self = this;
  pen.globalAlpha = strength;
  [[this.x, true], [this.y, false]].forEach(function (axis) {
    var name = axis[0], low = view.columns[name + "_low"], high = view.columns[name + "_high"];
    if (!low || !(high[i] > low[i])) return;
    if (axis[1]) {
      var from = clamp(self.across(low[i]), self.box.left, self.box.right);
      line(pen, from, self.py[i], clamp(self.across(high[i]), self.box.left, self.box.right),
        self.py[i], INK);
    } else {
      var bottom = clamp(self.down(low[i]), self.box.top, self.box.bottom);
      line(pen, self.px[i], bottom, self.px[i], clamp(self.down(high[i]), self.box.top,
        self.box.bottom), INK);
    }
  });
  pen.globalAlpha = 1;
};
// The nearest drawn point within reach of the pointer: one that meets the limits wins.
Pair.prototype.find = function (state, u, v) {
  return closest(state, this.px, this.py, u, v, 14);
};

// The best of y for each x, whatever the other two objectives are: the corners of the steps.
function staircase(view, shown, x, y) {
  var order = [], X = view.columns[x], Y = view.columns[y];
  for (var i = 0; i < view.n; i++) {
    if (shown[i] && X[i] === X[i] && Y[i] === Y[i]) order.push(i);
  }
  var sx = LOWER[x] ? 1 : -1, sy = LOWER[y] ? 1 : -1;
  order.sort(function (a, b) { return sx * (X[a] - X[b]) || sy * (Y[a] - Y[b]); });
  var out = [], best = Infinity;
  order.forEach(function (i) {
    if (sy * Y[i] < best) { best = sy * Y[i]; out.push([X[i], Y[i]]); }
  });
  return out;
}

// -- parallel coordinates

function Parallel(holder) {
  Chart.call(this, holder);
  this.above = new Layer(holder); // axes and their numbers stand above the lines
}
Parallel.prototype = Object.create(Chart.prototype);
Parallel.prototype.prepare = function (state) {
  this.fit();
  this.above.fit(this.width, this.height, this.ratio);
  var pen = this.still.pen, self = this, view = state.view;
  this.axes = OBJECTIVES.map(function (name, k) {
    var room = self.width - 120;
    return { name: name, at: 62 + room * k / (OBJECTIVES.length - 1), scale: state.scales[name] };
  });
  this.top = 30; this.bottom = this.height - 26;
  pen.clearRect(0, 0, this.width, this.height);
  pen.globalAlpha = 0.6;
  sample(view, state.shown, MOST_LINES).forEach(function (i) { self.trace(pen, view, i, FAINT, 1); });
  pen.globalAlpha = 1;
  pen = this.above.pen;
  pen.textBaseline = "middle";
  this.axes.forEach(function (axis) {
    line(pen, axis.at, self.top, axis.at, self.bottom, SOFT);
    pen.fillStyle = INK; pen.textAlign = "center";
    pen.font = "600 " + FONT;
    pen.fillText(TITLES[axis.name], axis.at, 12);
    pen.font = FONT;
    axis.scale.ticks.forEach(function (t) {
      var v = self.place(axis, t);
      line(pen, axis.at - 4, v, axis.at, v, SOFT);
      label(pen, axis.scale.label(t), axis.at - 8, v, "right");
    });
    if (axis.scale.undefinedOnes) {
      label(pen, "not defined", axis.at, self.bottom + 14, "center");
    }
  });
};
Parallel.prototype.place = function (axis, v) {
  if (v !== v) return this.bottom + 8;
  var share = axis.scale.at(v);
  return this.bottom - (LOWER[axis.name] ? 1 - share : share) * (this.bottom - this.top);
};
Parallel.prototype.trace = function (pen, view, i, colour, width) {
  var self = this;
  pen.beginPath();
  this.axes.forEach(function (axis, k) {
    pen[k ? "lineTo" : "moveTo"](axis.at, self.place(axis, view.columns[axis.name][i]));
  });
  pen.strokeStyle = colour; pen.lineWidth = width; pen.setLineDash([]);
  pen.stroke();
};
Parallel.prototype.draw = function (state) {
  var pen = this.moving.pen, view = state.view, self = this;
  pen.clearRect(0, 0, this.width, this.height);
  this.lines = sample(view, state.marks, MOST_LINES);
  pen.globalAlpha = this.lines.length > 60 ? 0.4 : 0.75;
  this.lines.forEach(function (i) {
    self.trace(pen, view, i, view.styles[view.method[i]].colour, view.front[i] ? 1.5 : 1);
  });
  pen.globalAlpha = 1;
  this.axes.forEach(function (axis) {
    var limit = state.limits[axis.name];
    if (limit === null) return;
    var v = clamp(self.place(axis, limit), self.top, self.bottom);
    pen.fillStyle = OUTSIDE;
    pen.fillRect(axis.at - 7, v, 14, self.bottom - v);
    line(pen, axis.at - 14, v, axis.at + 14, v, LIMIT);
    line(pen, axis.at - 14, v + 1, axis.at + 14, v + 1, LIMIT);
  });
  [state.hovered, state.chosen].forEach(function (i, order) {
    if (i < 0) return;
    self.trace(pen, view, i, "#fff", 5);
    self.trace(pen, view, i, order ? INK : SOFT, 2.4);
  });
};
Parallel.prototype.find = function (state, u, v) {
  var best = -1, least = 8, axes = this.axes, self = this;
  var candidates = this.lines.length ? this.lines : sample(state.view, state.shown, MOST_LINES);
  candidates.forEach(function (i) {
    for (var k = 0; k + 1 < axes.length; k++) {
      if (u < axes[k].at - 3 || u > axes[k + 1].at + 3) continue;
      var from = self.place(axes[k], state.view.columns[axes[k].name][i]);
      var to = self.place(axes[k + 1], state.view.columns[axes[k + 1].name][i]);
      var far = Math.abs(from + (to - from) * (u - axes[k].at) / (axes[k + 1].at - axes[k].at) - v);
      if (far < least) { least = far; best = i; }
    }
  });
  return best;
};

// At most `most` of the marked points: those on the front first, then evenly through the rest.
function sample(view, marks, most) {
  var front = [], rest = [];
  for (var i = 0; i < view.n; i++) if (marks[i]) (view.front[i] ? front : rest).push(i);
  if (front.length > most) return every(front, most);
  return every(rest, most - front.length).concat(front);
}
function every(list, most) {
  if (list.length <= most) return list;
  var out = [];
  for (var k = 0; k < most; k++) out.push(list[Math.floor(k * list.length / most)]);
  return out;
}

// -- three objectives in space, the fourth as colour

function Space(holder) {
  Chart.call(this, holder);
  this.turn = -0.72; this.lift = 0.5;
}
Space.prototype = Object.create(Chart.prototype);
Space.prototype.prepare = function (state) {
  this.fit();
  this.placed = null;
  this.faded = this.sheet();
  this.pressed = this.sheet();
  var r = finiteRange(state.view.columns.coverage);
  this.low = r.any ? r.low : 0; this.high = r.any ? r.high : 1; this.noCoverage = !r.any;
  if (this.high - this.low < 1e-9) this.low = Math.max(0, this.high - 0.01);
};
Space.prototype.project = function (x, y, z) {
  var cos = Math.cos(this.turn), sin = Math.sin(this.turn);
  var a = (x - 0.5) * cos - (y - 0.5) * sin, b = (x - 0.5) * sin + (y - 0.5) * cos;
  var up = (z - 0.5) * 0.8, c = Math.cos(this.lift), s = Math.sin(this.lift);
  var size = Math.min((this.width - 160) / 1.45, (this.height - 40) / 1.42);
  return {
    u: (this.width - 50) / 2 + a * size,
    v: this.height / 2 - 2 + (b * s - up * c) * size,
    depth: b * c + up * s
  };
};
Space.prototype.tint = function (coverage) {
  if (coverage !== coverage) return -1;
  return clamp(Math.round(15 * (coverage - this.low) / (this.high - this.low)), 0, 15);
};
Space.prototype.colour = function (coverage) {
  return coverage === coverage ? CIVIDIS[this.tint(coverage)] : UNKNOWN;
};
// The surface and the places of the points change with the turn, the methods and the limit on
// coverage, and not with the other limits.
Space.prototype.place = function (state) {
  var now = [this.turn, this.lift, state.limits.coverage, state.strictly].join();
  if (this.placed === now) return;
  this.placed = now;
  var pen = this.still.pen, self = this, C = state.view.columns, S = state.scales, n = state.view.n;
  pen.clearRect(0, 0, this.width, this.height);
  this.frame(pen, S);
  var patches = surface(state);
  patches.forEach(function (patch) {
    patch.corners = patch.points.map(function (p) {
      return self.project(S.epsilon.at(p[0]), S.gap.at(p[1]), S.accuracy.at(p[2]));
    });
    patch.depth = patch.corners.reduce(function (sum, c) { return sum + c.depth; }, 0);
  });
  patches.sort(function (a, b) { return a.depth - b.depth; }).forEach(function (patch) {
    pen.beginPath();
    patch.corners.forEach(function (c, k) { pen[k ? "lineTo" : "moveTo"](c.u, c.v); });
    pen.closePath();
    pen.fillStyle = self.colour(patch.coverage); pen.globalAlpha = 0.42;
    pen.fill();
    pen.globalAlpha = 0.7; pen.strokeStyle = "#fff"; pen.lineWidth = 0.5; pen.setLineDash([]);
    pen.stroke();
  });
  pen.globalAlpha = 1;
  this.key(pen);
  this.px = new Float32Array(n).fill(NaN); this.py = new Float32Array(n).fill(NaN);
  var depth = new Float32Array(n), faint = stampOf("circle", FAINT, null, 1.3, this.ratio);
  this.faded.clear();
  for (var i = 0; i < n; i++) {
    if (!state.shown[i] || C.gap[i] !== C.gap[i] || C.accuracy[i] !== C.accuracy[i]) continue;
    var p = this.project(S.epsilon.at(C.epsilon[i]), S.gap.at(C.gap[i]), S.accuracy.at(C.accuracy[i]));
    this.px[i] = p.u; this.py[i] = p.v; depth[i] = p.depth;
    this.faded.press(faint, p.u * this.ratio, p.v * this.ratio);
  }
  this.order = Int32Array.from({ length: n }, function (_, i) { return i; })
    .filter(function (i) { return self.px[i] === self.px[i]; })
    .sort(function (a, b) { return depth[a] - depth[b]; });
};
Space.prototype.draw = function (state) {
  this.place(state);
  var view = state.view, ratio = this.ratio, sheet = this.pressed, cover = view.columns.coverage;
  var stamps = {}, pen = this.moving.pen, self = this;
  sheet.clear(this.faded);
  for (var k = 0; k < this.order.length; k++) {
    var i = this.order[k];
    if (!state.marks[i]) continue;
    var tint = this.tint(cover[i]), name = 64 * view.method[i] + 2 * tint + view.front[i];
    var stamp = stamps[name] = stamps[name] || stampOf(view.styles[view.method[i]].shape,
      tint < 0 ? UNKNOWN : CIVIDIS[tint], view.front[i] ? INK : "#fff", view.front[i] ? 3.8 : 2.8, ratio);
    sheet.press(stamp, this.px[i] * ratio, this.py[i] * ratio);
  }
  this.moving.show(sheet, ratio);
  [state.hovered, state.chosen].forEach(function (i, later) {
    if (i >= 0 && self.px[i] === self.px[i]) {
      halo(pen, self.px[i], self.py[i], later ? INK : SOFT, later ? 8 : 7);
    }
  });
};
Space.prototype.frame = function (pen, S) {
  var self = this;
  function at(x, y, z) { return self.project(x, y, z); }
  // Walls behind, floor below: which walls are behind depends on the turn.
  var backX = at(0, 0.5, 0).depth < at(1, 0.5, 0).depth ? 0 : 1;
  var backY = at(0.5, 0, 0).depth < at(0.5, 1, 0).depth ? 0 : 1;
  function stroke(a, b, colour) { line(pen, a.u, a.v, b.u, b.v, colour); }
  pen.textBaseline = "middle"; pen.textAlign = "center";
  S.epsilon.ticks.forEach(function (t) {
    var x = S.epsilon.at(t), off = at(x, (1 - backY) * 1.16 - backY * 0.16, 0);
    stroke(at(x, 0, 0), at(x, 1, 0), GRID); stroke(at(x, backY, 0), at(x, backY, 1), GRID);
    pen.fillStyle = SOFT; pen.fillText(S.epsilon.label(t), off.u, off.v);
  });
  S.gap.ticks.forEach(function (t) {
    var y = S.gap.at(t), off = at((1 - backX) * 1.16 - backX * 0.16, y, 0);
    stroke(at(0, y, 0), at(1, y, 0), GRID); stroke(at(backX, y, 0), at(backX, y, 1), GRID);
    pen.fillStyle = SOFT; pen.fillText(S.gap.label(t), off.u, off.v);
  });
  // Heights are written at the upright edge that stands furthest left.
  var corners = [[backX, 1 - backY], [1 - backX, backY]];
  var left = at(corners[0][0], corners[0][1], 0).u < at(corners[1][0], corners[1][1], 0).u ? 0 : 1;
  S.accuracy.ticks.forEach(function (t) {
    var z = S.accuracy.at(t), p = at(corners[left][0], corners[left][1], z);
    stroke(at(0, backY, z), at(1, backY, z), GRID); stroke(at(backX, 0, z), at(backX, 1, z), GRID);
    pen.fillStyle = SOFT; pen.textAlign = "right"; pen.fillText(S.accuracy.label(t), p.u - 6, p.v);
    pen.textAlign = "center";
  });
  [[0, 0, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 0, 0]].forEach(function (e) {
    stroke(at(e[0], e[1], 0), at(e[2], e[3], 0), SOFT);
  });
  pen.fillStyle = INK; pen.font = "600 " + FONT;
  var e = at(0.5, (1 - backY) * 1.36 - backY * 0.36, 0), g = at((1 - backX) * 1.36 - backX * 0.36, 0.5, 0);
  pen.fillText("epsilon", e.u, e.v); pen.fillText("gap", g.u, g.v);
  var top = at(corners[left][0], corners[left][1], 1);
  pen.fillText("accuracy", Math.max(30, top.u), Math.max(8, top.v - 12));
  pen.font = FONT;
};
Space.prototype.key = function (pen) {
  var x = this.width - 62, top = 34, tall = Math.min(140, this.height - 80), k;
  pen.textAlign = "left"; pen.textBaseline = "middle";
  pen.fillStyle = INK; pen.font = "600 " + FONT; pen.fillText("coverage", x - 6, 16); pen.font = FONT;
  if (this.noCoverage) { pen.fillStyle = SOFT; pen.fillText("not defined", x - 12, 36); return; }
  for (k = 0; k < 16; k++) {
    pen.fillStyle = CIVIDIS[15 - k];
    pen.fillRect(x, top + tall * k / 16, 12, tall / 16 + 0.5);
  }
  pen.fillStyle = SOFT;
  pen.fillText(this.high.toFixed(2), x + 17, top + 5);
  pen.fillText(this.low.toFixed(2), x + 17, top + tall - 5);
};
Space.prototype.find = function (state, u, v) {
  return closest(state, this.px, this.py, u, v, 12);
};

// The best accuracy that any shown setting reaches within each epsilon and gap, at the coverage
// that is asked for; the colour is the coverage of the setting that reaches it.
var MOST_STEPS = 18;
function surface(state) {
  var C = state.view.columns, n = state.view.n, i, a, b;
  var cover = judged(C, "coverage", state.strictly), asked = state.limits.coverage;
  var use = [];
  for (i = 0; i < n; i++) {
    if (state.shown[i] && C.gap[i] === C.gap[i] && C.accuracy[i] === C.accuracy[i]
        && (asked === null || cover[i] >= asked)) use.push(i);
  }
  var X = steps(use, C.epsilon), Y = steps(use, C.gap);
  var best = X.map(function () { return new Int32Array(Y.length).fill(-1); });
  function better(one, other) { return one >= 0 && (other < 0 || C.accuracy[one] > C.accuracy[other]); }
  use.forEach(function (i) {
    a = upper(X, C.epsilon[i]); b = upper(Y, C.gap[i]);
    if (a < X.length && b < Y.length && better(i, best[a][b])) best[a][b] = i;
  });
  for (a = 0; a < X.length; a++) {
    for (b = 0; b < Y.length; b++) {
      if (a && better(best[a - 1][b], best[a][b])) best[a][b] = best[a - 1][b];
      if (b && better(best[a][b - 1], best[a][b])) best[a][b] = best[a][b - 1];
    }
  }
  var patches = [];
  for (a = 0; a + 1 < X.length; a++) {
    for (b = 0; b + 1 < Y.length; b++) {
      if (best[a][b] < 0) continue;
      patches.push({
        points: [[a, b], [a + 1, b], [a + 1, b + 1], [a, b + 1]].map(function (p) {
          return [X[p[0]], Y[p[1]], C.accuracy[best[p[0]][p[1]]]];
        }),
        coverage: C.coverage[best[a][b]]
      });
    }
  }
  return patches;
}
function steps(use, column) {
  var values = Array.from(new Set(use.map(function (i) { return column[i]; })));
  values.sort(function (a, b) { return a - b; });
  if (values.length <= MOST_STEPS) return values;
  var out = [];
  for (var k = 0; k < MOST_STEPS; k++) {
    out.push(values[Math.round(k * (values.length - 1) / (MOST_STEPS - 1))]);
  }
  return out;
}
function upper(sorted, v) {
  var low = 0, high = sorted.length;
  while (low < high) {
    var middle = (low + high) >> 1;
    if (sorted[middle] < v) low = middle + 1; else high = middle;
  }
  return low;
}

// -- small hands

var UNKNOWN = "#9aa5b1"; // where coverage is not defined
var CIVIDIS = ["#00224e", "#0d2b63", "#233570", "#333f6f", "#414a6c", "#4e556c", "#5a5f6e", "#666a71",
  "#737475", "#807f78", "#8e8a78", "#9d9675", "#ada26f", "#beaf66", "#d0bd59", "#e5cf4a"];

// The stamps of a view: per method, off the front and on it; smaller where there are many.
function marksOf(state, ratio) {
  var view = state.view, size = state.count > 300 ? 0.72 : 1, key = size * ratio;
  if (view.stamps && view.stampsFor === key) return view.stamps;
  view.stampsFor = key;
  view.stamps = [];
  Object.keys(view.styles).forEach(function (method) {
    var style = view.styles[method];
    view.stamps[2 * method] = stampOf(style.shape, style.colour, "#fff", 3.2 * size, ratio);
    view.stamps[2 * method + 1] = stampOf(style.shape, style.colour, INK, 4 * size, ratio);
  });
  return view.stamps;
}
function clamp(v, low, high) { return Math.max(low, Math.min(high, v)); }
function line(pen, x0, y0, x1, y1, colour, dash) {
  pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1);
  pen.strokeStyle = colour; pen.lineWidth = 1.2; pen.setLineDash(dash || []);
  pen.stroke(); pen.setLineDash([]);
}
function halo(pen, u, v, colour, radius) {
  pen.beginPath(); pen.arc(u, v, radius, 0, 2 * Math.PI);
  pen.strokeStyle = "#fff"; pen.lineWidth = 5; pen.setLineDash([]); pen.stroke();
  pen.strokeStyle = colour; pen.lineWidth = 2.2; pen.stroke();
}
function label(pen, words, u, v, align) {
  pen.textAlign = align;
  pen.strokeStyle = "rgba(255, 255, 255, 0.9)"; pen.lineWidth = 4; pen.lineJoin = "round";
  pen.strokeText(words, u, v);
  pen.fillStyle = SOFT;
  pen.fillText(words, u, v);
}
function closest(state, px, py, u, v, reach) {
  var best = -1, least = reach * reach;
  for (var i = 0; i < state.view.n; i++) {
    if (!state.shown[i]) continue;
    var far = (px[i] - u) * (px[i] - u) + (py[i] - v) * (py[i] - v);
    if (!state.marks[i]) far = 2 * far + 9;
    if (far < least) { least = far; best = i; }
  }
  return best;
}
