// Functions that make elements without markup in strings: nothing that comes from the agent is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Sets an attribute only if it changes: most of a frame is as before. */
export function set(element, key, value) {
  const text = value === null || value === undefined || value === false ? null : String(value);
  if (element.getAttribute(key) === text) return;
  if (text === null) element.removeAttribute(key);
  else element.setAttribute(key, text);
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Returns a sentence as elements; words in backticks become code. */
export function sentence(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}
