// What meets the limits, what comes nearest, and what would have to give. No drawing here.

// Objective by objective: which way is better, and how it is said.
var OBJECTIVES = ["epsilon", "gap", "accuracy", "coverage"];
var LOWER = { epsilon: true, gap: true, accuracy: false, coverage: false };
var TITLES = { epsilon: "epsilon", gap: "gap", accuracy: "accuracy", coverage: "coverage" };
var LIMIT_WORDS = {
  epsilon: "largest epsilon", gap: "largest gap", accuracy: "smallest accuracy",
  coverage: "smallest coverage"
};

// Epsilon is compared by ratio, the others by difference.
function measure(name, value) { return name === "epsilon" ? Math.log(value) : value; }

// JSON has neither infinity nor NaN: an epsilon without a number is infinite, the rest undefined.
function readColumns(given, n) {
  var out = {};
  ["epsilon", "gap", "gap_low", "gap_high", "accuracy", "accuracy_low", "accuracy_high",
    "coverage", "coverage_low", "coverage_high", "majority", "free", "disparity"].forEach(function (name) {
    var missing = name === "epsilon" ? Infinity : NaN, column = new Float64Array(n);
    for (var i = 0; i < n; i++) column[i] = given[name][i] === null ? missing : given[name][i];
    out[name] = column;
  });
  return out;
}

// The column that a limit is held against: the value, or the worse end of its interval.
function judged(columns, name, strictly) {
  if (!strictly || name === "epsilon") return columns[name];
  return columns[name + (LOWER[name] ? "_high" : "_low")];
}

// Fills `out` with 1 for each point within all limits; a limit of null asks for nothing. A number
// that is not defined meets no limit (every comparison with NaN is false).
function mark(columns, limits, strictly, shown, out) {
  var n = shown.length, count = 0;
  for (var i = 0; i < n; i++) out[i] = shown[i];
  OBJECTIVES.forEach(function (name) {
    var limit = limits[name], column = judged(columns, name, strictly);
    if (limit === null) return;
    if (LOWER[name]) {
      for (var i = 0; i < n; i++) if (!(column[i] <= limit)) out[i] = 0;
    } else {
      for (var j = 0; j < n; j++) if (!(column[j] >= limit)) out[j] = 0;
    }
  });
  for (var k = 0; k < n; k++) count += out[k];
  return count;
}

// What one step of distance is in each objective: the range that all settings span.
function spans(columns) {
  var out = {};
  OBJECTIVES.forEach(function (name) {
    var low = Infinity, high = -Infinity, column = columns[name];
    for (var i = 0; i < column.length; i++) {
      if (!isFinite(column[i])) continue;
      low = Math.min(low, measure(name, column[i]));
      high = Math.max(high, measure(name, column[i]));
    }
    out[name] = high > low ? high - low : 1;
  });
  return out;
}

// How far one point is outside one limit, as a share of the range; 0 within, Infinity for never.
function shortfall(name, value, limit, span) {
  if (limit === null) return 0;
  if (value !== value) return Infinity;
  var over = measure(name, value) - measure(name, limit);
  return Math.max(0, LOWER[name] ? over : -over) / span;
}

// The point with the smallest Euclidean distance to the limits; -1 where none can be compared.
function nearest(columns, limits, strictly, shown, span) {
  var best = -1, least = Infinity;
  var used = OBJECTIVES.map(function (name) { return judged(columns, name, strictly); });
  for (var i = 0; i < shown.length; i++) {
    if (!shown[i]) continue;
    var sum = 0;
    for (var k = 0; k < OBJECTIVES.length; k++) {
      var part = shortfall(OBJECTIVES[k], used[k][i], limits[OBJECTIVES[k]], span[OBJECTIVES[k]]);
      sum += part * part;
    }
    if (sum < least) { least = sum; best = i; }
  }
  return best;
}

// For each limit: how far it alone must give, the others held, for something to meet them all.
function reliefs(columns, limits, strictly, shown) {
  var out = [], marks = new Uint8Array(shown.length);
  OBJECTIVES.forEach(function (name) {
    if (limits[name] === null) return;
    var without = Object.assign({}, limits), best = null;
    without[name] = null;
    mark(columns, without, strictly, shown, marks);
    var column = judged(columns, name, strictly);
    for (var i = 0; i < marks.length; i++) {
      if (!marks[i] || column[i] !== column[i]) continue;
      if (best === null || (LOWER[name] ? column[i] < best : column[i] > best)) best = column[i];
    }
    out.push({ name: name, to: best });
  });
  return out;
}
