"use strict";
(function () {
  var quiet = {
    displayModeBar: false, displaylogo: false, responsive: true, scrollZoom: false,
    doubleClick: false, showTips: false, showLink: false
  };
  var charts = Array.prototype.slice.call(document.querySelectorAll(".chart"));
  charts.forEach(function (chart) {
    var figure = JSON.parse(document.getElementById(chart.id + "-data").textContent);
    chart.textContent = "";
    Plotly.newPlot(chart, figure.data, figure.layout, quiet);
  });
  // On paper there is nothing to click: open every table, and fit the charts to the sheet.
  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    opened.forEach(function (table) { table.open = true; });
    charts.forEach(function (chart) { Plotly.relayout(chart, { width: 660, autosize: false }); });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (table) { table.open = false; });
    charts.forEach(function (chart) { Plotly.relayout(chart, { width: null, autosize: true }); });
  });
})();
