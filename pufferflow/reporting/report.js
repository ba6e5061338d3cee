// What the page can do beyond being read; without scripts it is whole, only these buttons are missing.
"use strict";

const add = (parent, text, label) => {
  const button = parent.appendChild(document.createElement("button"));
  button.type = "button";
  button.textContent = text;
  if (label) button.setAttribute("aria-label", label);
  return button;
};

// -- light and dark: as the system, or as chosen ---------------------------------------------------
const THEMES = ["system", "light", "dark"];
const store = (value) => {
  try {
    if (value) localStorage.setItem("theme", value);
    return localStorage.getItem("theme");
  } catch {
    return null; // a page opened from a file may have no storage
  }
};
const tools = document.createElement("div");
tools.className = "tools";
document.getElementById("top").prepend(tools);
const themeButton = add(tools, "");
const setTheme = (theme) => {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = `Colours: ${theme}`;
  themeButton.dataset.theme = theme;
};
setTheme(THEMES.includes(store()) ? store() : "system");
themeButton.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(themeButton.dataset.theme) + 1) % THEMES.length];
  store(next);
  setTheme(next);
});

// -- folded parts: all at once, for an address inside one, and on paper -------------------------------
const folds = [...document.querySelectorAll("main details, header details")];
const foldButton = add(tools, "Open all");
foldButton.addEventListener("click", () => {
  const open = foldButton.textContent === "Open all";
  folds.forEach((fold) => (fold.open = open));
  foldButton.textContent = open ? "Fold all" : "Open all";
});
const openTo = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", openTo);
openTo();
let closed = [];
addEventListener("beforeprint", () => {
  closed = folds.filter((fold) => !fold.open && fold.className !== "settings"); // all settings are at the end
  closed.forEach((fold) => (fold.open = true));
});
addEventListener("afterprint", () => closed.forEach((fold) => (fold.open = false)));

// -- tables: a click on a column's name sorts by it, up, down, and back ----------------------------
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const number = (text) => {
  if (text.includes("∞")) return text.startsWith("−") ? -Infinity : Infinity;
  const plain = text
    .replace(/×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/, (_, power) => "e" + power.replace("⁻", "-").replace(/[⁰-⁹¹²³]/g, (c) => SUPERSCRIPTS.indexOf(c)))
    .replaceAll("−", "-")
    .replaceAll(",", "");
  const found = plain.match(/^-?\d+(\.\d+)?(e-?\d+)?/);
  return found ? Number(found[0]) : NaN;
};
const compare = (a, b, numeric) => {
  if (!numeric) return a.localeCompare(b, "en", { numeric: true });
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // no number: last
  return x === y ? 0 : x - y;
};

// A name printed once for several rows is given to each of them, so that rows can move.
const separate = (body) => {
  const rows = [...body.rows];
  rows.forEach((row, i) => {
    [...row.cells].forEach((cell, column) => {
      const span = cell.rowSpan;
      cell.rowSpan = 1;
      for (let below = i + 1; below < i + span; below++) rows[below].insertBefore(cell.cloneNode(true), rows[below].cells[column] ?? null);
    });
  });
};

document.querySelectorAll("table:not(.matrix)").forEach((table) => {
  const body = table.tBodies[0];
  const merged = [...body.rows];
  let whole = null; // rows of the body with every name in its place
  const original = body.innerHTML;
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  if (merged.length < 2) return;
  heads.forEach((head, column) => {
    const name = head.textContent;
    head.textContent = "";
    add(head, name, `Sort by ${name}`).addEventListener("click", () => {
      const order = { null: "ascending", ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (order === null) {
        body.innerHTML = original;
        whole = null;
        return;
      }
      head.setAttribute("aria-sort", order);
      if (whole === null) {
        separate(body);
        whole = [...body.rows];
      }
      const sign = order === "ascending" ? 1 : -1;
      const numeric = head.classList.contains("number");
      const text = (row) => row.cells[column].textContent;
      const empty = (row) => numeric && Number.isNaN(number(text(row)));
      body.append(...[...whole].sort((a, b) => empty(a) - empty(b) || sign * compare(text(a), text(b), numeric)));
    });
  });
});

// -- figures: the drawing itself moves into a dialog and back --------------------------------------
const dialog = document.body.appendChild(document.createElement("dialog"));
const close = add(dialog, "Close");
close.addEventListener("click", () => dialog.close());
let home = null;
dialog.addEventListener("close", () => home?.());
document.querySelectorAll("figure").forEach((figure) => {
  const drawing = figure.querySelector("svg");
  const place = drawing.parentElement;
  const button = add(figure, "Enlarge", `Enlarge: ${drawing.getAttribute("aria-label")}`);
  button.addEventListener("click", () => {
    dialog.append(drawing);
    dialog.setAttribute("aria-label", drawing.getAttribute("aria-label"));
    home = () => place.append(drawing);
    dialog.showModal();
  });
});

// -- contents: closed on a narrow screen, and the section being read is marked ---------------------
const contents = document.querySelector("nav details");
if (contents && matchMedia("(max-width: 75rem)").matches) contents.open = false;
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const reading = new IntersectionObserver(
  (entries) => {
    const top = entries.find((entry) => entry.isIntersecting);
    if (!top) return;
    links.forEach((link) => link.removeAttribute("aria-current"));
    links.get(top.target.getAttribute("aria-labelledby"))?.setAttribute("aria-current", "true");
  },
  { rootMargin: "0px 0px -70% 0px" },
);
document.querySelectorAll("main section").forEach((section) => reading.observe(section));
