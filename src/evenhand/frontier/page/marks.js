// Thousands of marks in a few milliseconds: each shape is drawn once and then copied, pixel by
// pixel, into one image. It needs no graphics card, and takes as long with one as without.

var SHAPES = ["circle", "square", "diamond", "triangle", "wedge", "cross", "plus"];

function outline(pen, shape, x, y, r) {
  pen.beginPath();
  if (shape === "square") pen.rect(x - r * 0.86, y - r * 0.86, r * 1.72, r * 1.72);
  else if (shape === "circle") pen.arc(x, y, r, 0, 2 * Math.PI);
  else {
    var points = {
      diamond: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]],
      triangle: [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
      wedge: [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]],
      cross: [[-1, -0.45], [-0.45, -1], [0, -0.5], [0.45, -1], [1, -0.45], [0.5, 0], [1, 0.45],
        [0.45, 1], [0, 0.5], [-0.45, 1], [-1, 0.45], [-0.5, 0]],
      plus: [[-0.38, -1.1], [0.38, -1.1], [0.38, -0.38], [1.1, -0.38], [1.1, 0.38], [0.38, 0.38],
        [0.38, 1.1], [-0.38, 1.1], [-0.38, 0.38], [-1.1, 0.38], [-1.1, -0.38], [-0.38, -0.38]]
    }[shape];
    points.forEach(function (p, i) {
      pen[i ? "lineTo" : "moveTo"](x + p[0] * r, y + p[1] * r);
    });
  }
  pen.closePath();
}

// A stamp keeps the pixels that its shape touches: where each is from the centre, and its colour.
var stamps = {};
function stampOf(shape, fill, edge, radius, ratio) {
  var key = [shape, fill, edge, radius, ratio].join();
  if (stamps[key]) return stamps[key];
  var half = Math.ceil((radius * 1.25 + 1) * ratio), size = 2 * half + 1;
  var canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  var pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.scale(ratio, ratio);
  outline(pen, shape, size / 2 / ratio, size / 2 / ratio, radius);
  pen.fillStyle = fill;
  pen.fill();
  if (edge) { pen.strokeStyle = edge; pen.lineWidth = edge === INK ? 1.2 : 0.8; pen.stroke(); }
  var image = pen.getImageData(0, 0, size, size), words = new Uint32Array(image.data.buffer);
  var dx = [], dy = [], colour = [];
  for (var k = 0; k < words.length; k++) {
    if (!image.data[4 * k + 3]) continue;
    dx.push(k % size - half); dy.push(Math.floor(k / size) - half); colour.push(words[k]);
  }
  stamps[key] = {
    half: half, dx: Int16Array.from(dx), dy: Int16Array.from(dy),
    colour: Uint32Array.from(colour), number: Object.keys(stamps).length + 1
  };
  return stamps[key];
}

// An image of the size of a canvas, to be pressed upon.
function Sheet(pen, width, height) {
  this.image = pen.createImageData(width, height);
  this.words = new Uint32Array(this.image.data.buffer);
  this.width = width; this.height = height;
  this.last = new Uint16Array(width * height); // the stamp that was last centred at each pixel
}
Sheet.prototype.clear = function (other) {
  this.last.fill(0);
  if (other) this.words.set(other.words);
  else this.words.fill(0);
};
// Lays a stamp over the sheet, centred at (x, y) in device pixels.
Sheet.prototype.press = function (stamp, x, y) {
  var u = Math.round(x), v = Math.round(y), half = stamp.half, width = this.width, words = this.words;
  if (u < half || v < half || u + half >= width || v + half >= this.height) return;
  var centre = v * width + u;
  if (this.last[centre] === stamp.number) return; // the same mark at the same place: nothing to add
  this.last[centre] = stamp.number;
  var dx = stamp.dx, dy = stamp.dy, colour = stamp.colour;
  for (var k = 0; k < dx.length; k++) {
    var at = centre + dy[k] * width + dx[k], over = colour[k], alpha = over >>> 24, under = words[at];
    if (alpha === 255 || !(under >>> 24)) words[at] = over;
    else words[at] = blend(over, alpha, under);
  }
};
// Both as the machine keeps pixels: red lowest, then green, blue, alpha.
function blend(over, alpha, under) {
  var rest = (under >>> 24) * (255 - alpha) / 255, whole = alpha + rest;
  function part(shift) {
    return ((over >>> shift & 255) * alpha + (under >>> shift & 255) * rest) / whole & 255;
  }
  return (Math.round(whole) << 24 | part(16) << 16 | part(8) << 8 | part(0)) >>> 0;
}
