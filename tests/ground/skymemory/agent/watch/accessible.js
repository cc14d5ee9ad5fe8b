// A few checks of what a page owes to who does not see it well, in the spirit of axe: says what is wrong, one line each.
() => {
  const wrong = [];
  const seen = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const shown = (element) => `${element.localName}${element.id ? `#${element.id}` : ""}.${element.getAttribute("class") ?? ""}`;

  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids.filter((one, at) => ids.indexOf(one) !== at))) wrong.push(`id ${id} is there twice`);
  for (const image of document.querySelectorAll("img:not([alt])")) wrong.push(`${shown(image)} has no alt`);
  if (!document.documentElement.lang) wrong.push("no language");
  if (document.querySelectorAll("main").length !== 1) wrong.push("not one main");
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");

  // Whatever can be operated has a name
  for (const element of document.querySelectorAll("a[href], button, select, input, canvas, summary, [role=grid], [role=gridcell], [tabindex='0']")) {
    const name = element.getAttribute("aria-label") || element.textContent.trim();
    if (seen(element) && !name) wrong.push(`${shown(element)} has no name`);
  }
  for (const label of document.querySelectorAll("[aria-labelledby]")) {
    if (!document.getElementById(label.getAttribute("aria-labelledby"))) wrong.push(`${shown(label)} is labelled by nothing`);
  }
  // Roles stand in each other as they should, and one cell is in the order of Tab
  for (const grid of document.querySelectorAll("[role=grid]")) {
    const cells = [...grid.querySelectorAll("[role=gridcell]")];
    if (!cells.length || cells.some((cell) => !cell.closest("[role=row]"))) wrong.push("a grid without rows of cells");
    if (cells.filter((cell) => cell.getAttribute("tabindex") === "0").length !== 1) wrong.push("not one cell in the order of Tab");
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("th[scope=col]")) wrong.push("a table without heads of columns");
  }

  // Text is told from its ground: 4.5 to 1, 3 to 1 if it is large
  const parse = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    return { red, green, blue, alpha };
  };
  const luminance = ({ red, green, blue }) => {
    const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const groundOf = (element) => {
    const body = element.closest(".cell")?.querySelector(".body");
    const fill = body && getComputedStyle(body).fill;
    if (fill && fill !== "none") return parse(fill);
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.alpha === 1) return colour;
    }
    return parse("rgb(255, 255, 255)");
  };
  // What is drawn without text is told from what it lies on: 3 to 1
  const named = (name) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const found = parse(getComputedStyle(probe).color);
    probe.remove();
    return found;
  };
  const pairs = ["rim panel", "coast sea", "coast land", "limb panel", "site sea", "site land", "track sea", "track land", "used sea", "arc sea", "focus panel"];
  for (const pair of pairs) {
    const found = contrast(...pair.split(" ").map(named));
    if (found < 3) wrong.push(`--${pair}: contrast ${found.toFixed(2)}`);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !seen(element) || element.closest("noscript, script, .skip, button:disabled")) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.ownerSVGElement ? style.fill : style.color);
    if (parseFloat(style.fontSize) < 11) wrong.push(`"${walker.currentNode.textContent.trim()}" in ${shown(element)}: ${style.fontSize}`);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    const found = contrast(ink, groundOf(element));
    if (found < (large ? 3 : 4.5)) wrong.push(`"${walker.currentNode.textContent.trim()}" in ${shown(element)}: contrast ${found.toFixed(2)}`);
  }
  return wrong;
}
