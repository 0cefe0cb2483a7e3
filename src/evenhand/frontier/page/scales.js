// From a number to a place on an axis (0 to 1), with ticks that a person would choose.

var INFINITE_AT = 0.965, FINITE_TO = 0.86; // where an axis of epsilon keeps room for infinity

function said(name, value) {
  if (value === Infinity) return "∞";
  if (value !== value) return "not defined";
  if (name === "epsilon") return String(+value.toPrecision(4));
  return value.toFixed(4);
}

function short(name, value) {
  if (value === Infinity) return "∞";
  if (value !== value) return "–";
  return name === "epsilon" ? String(+value.toPrecision(3)) : value.toFixed(3);
}

function finiteRange(column) {
  var low = Infinity, high = -Infinity, infinite = false, undefinedOnes = 0;
  for (var i = 0; i < column.length; i++) {
    var v = column[i];
    if (v === Infinity) infinite = true;
    else if (v !== v) undefinedOnes++;
    else { if (v < low) low = v; if (v > high) high = v; }
  }
  return { low: low, high: high, infinite: infinite, undefinedOnes: undefinedOnes, any: low <= high };
}

function scaleOf(name, column) {
  return name === "epsilon" ? logScale(column) : linearScale(name, column);
}

function logScale(column) {
  var r = finiteRange(column);
  var low = r.any ? r.low : 1, high = r.any ? r.high : 1, to = r.infinite ? FINITE_TO : 1;
  if (high / low < 1.5) { low /= 1.5; high *= 1.5; }
  var room = Math.pow(high / low, 0.06);
  var from = Math.log(low / room), width = Math.log(high * room) - from;
  var ticks = [];
  for (var power = -6; power <= 9; power++) {
    [1, 2, 5].forEach(function (lead) {
      var value = +(lead * Math.pow(10, power)).toPrecision(1);
      if (value >= low / room && value <= high * room) ticks.push(value);
    });
  }
  if (ticks.length > 6) {
    ticks = ticks.filter(function (v) { return String(v).replace(/[0.]/g, "")[0] === "1"; });
  }
  var asked = Array.from(new Set(column)).filter(isFinite).sort(function (a, b) { return a - b; });
  var apart = asked.every(function (v, i) {
    return !i || Math.log(v / asked[i - 1]) >= 0.1 * width;
  });
  if (asked.length && asked.length <= 6 && apart) ticks = asked; // a grid has few, and names them
  var out = {
    name: "epsilon", ticks: ticks, infinite: r.infinite, undefinedOnes: 0,
    at: function (v) { return v === Infinity ? INFINITE_AT : to * (Math.log(v) - from) / width; },
    label: function (v) { return said("epsilon", v); }
  };
  if (r.infinite) ticks.push(Infinity);
  return out;
}

function linearScale(name, column) {
  var r = finiteRange(column);
  var low = r.any ? r.low : 0, high = r.any ? r.high : 1;
  var room = Math.max((high - low) * 0.06, 0.005);
  low = low <= 0.1 * high ? Math.min(0, low) - room / 3 : low - room;
  high = high + room > 1 ? 1 + room / 3 : high + room; // no share is above 1
  var raw = (high - low) / 5, power = Math.pow(10, Math.floor(Math.log10(raw)));
  var step = [1, 2, 2.5, 5, 10].map(function (m) { return m * power; })
    .filter(function (s) { return s >= raw * 0.999; })[0];
  var digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  if (Math.abs(step * Math.pow(10, digits) % 1) > 1e-6) digits++;
  var ticks = [];
  for (var t = Math.ceil(low / step) * step; r.any && t <= high + 1e-12; t += step) {
    if (t >= -1e-12 && t <= 1 + 1e-12) ticks.push(Math.abs(t) < 1e-12 ? 0 : t);
  }
  return {
    name: name, ticks: ticks, infinite: false, undefinedOnes: r.undefinedOnes,
    at: function (v) { return (v - low) / (high - low); },
    label: function (v) { return v.toFixed(digits); }
  };
}
