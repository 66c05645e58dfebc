// SPDX-License-Identifier: Apache-2.0
// Elements from values, and a page that is changed only where it differs. All text becomes text nodes: nothing that
// a job wrote is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  element.handlers = {};
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.handlers[name] = value;
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

// h("td", {class: "number", onclick: f}, "text", child, [more]): an HTML element. Of attributes null, undefined and
// false are left out, and so are such children.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// The same in SVG.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// A place in a view for an element that lives on while views are drawn again: a chart, a log.
export function slot(key, element) {
  const holder = h("div", { "data-key": key, "data-own": "" });
  holder.own = element;
  return holder;
}

function settle(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  const holders = node.matches("[data-own]") ? [node] : node.querySelectorAll("[data-own]");
  for (const holder of holders) if (holder.own) holder.replaceChildren(holder.own);
}

function sync(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
      if (name === "value" && old !== document.activeElement) old.value = value;
    }
  }
  for (const name of Object.keys(old.handlers ?? {})) if (!fresh.handlers?.[name]) old[name] = null;
  for (const [name, value] of Object.entries(fresh.handlers ?? {})) old[name] = value;
  old.handlers = fresh.handlers;
}

function alike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName &&
    (old.nodeType !== Node.ELEMENT_NODE || old.dataset.key === fresh.dataset.key);
}

// Makes the children of `old` those of `fresh`, which is used up. Elements with the same data-key stay the same
// elements, so focus, selection and scrolling outlive a poll.
export function morph(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (child.dataset.key !== undefined) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = child.nodeType === Node.ELEMENT_NODE ? child.dataset.key : undefined;
    let match = key !== undefined ? keyed.get(key) : at && alike(at, child) ? at : null;
    if (match && !alike(match, child)) match = null;
    if (!match) {
      old.insertBefore(child, at);
      settle(child);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    if (match.nodeType === Node.TEXT_NODE) {
      if (match.data !== child.data) match.data = child.data;
      continue;
    }
    sync(match, child);
    if (child.own === undefined) morph(match, child);
    else if (match.firstChild !== child.own) match.replaceChildren(child.own);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
