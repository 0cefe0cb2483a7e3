// A table that scrolls can be reached by the keyboard, and each button has a name.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
  for (const summary of document.querySelectorAll("summary")) {  // an arrow alone says nothing
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Pages below");
  }
});
