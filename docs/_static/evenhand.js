// A table that scrolls can be reached by the keyboard, and each button has a name.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
  for (const summary of document.querySelectorAll("summary")) {  // an arrow alone says nothing
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Pages below");
  }
});
// Where several versions were built, versions.js lists them.
document.addEventListener("DOMContentLoaded", () => {
  for (const choice of document.querySelectorAll("select.evenhand-version")) {
    const here = choice.value;
    choice.replaceChildren(...(window.evenhandVersions || [here]).map((name) => new Option(name)));
    choice.value = here;
    choice.addEventListener("change", () => {
      location.href = `${choice.dataset.root}${choice.value}/index.html`;
    });
  }
});
