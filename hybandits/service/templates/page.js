"use strict";
{
  const main = document.getElementById("content"), connection = document.getElementById("connection");
  const pause = 2000; // milliseconds between two requests

  // Make the old element like the new one, and leave alone what is the same: focus, selection and scrolling stay.
  function renew(old, now) {
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of now.attributes) if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    const fresh = [...now.childNodes];
    while (old.childNodes.length > fresh.length) old.lastChild.remove();
    fresh.forEach((child, i) => {
      const before = old.childNodes[i];
      if (!before) old.append(child);
      else if (before.nodeName !== child.nodeName) before.replaceWith(child);
      else if (child.nodeType === Node.ELEMENT_NODE) renew(before, child);
      else if (before.nodeValue !== child.nodeValue) before.nodeValue = child.nodeValue;
    });
  }

  function write(element, text) { if (element.textContent !== text) element.textContent = text; }

  // "3 s ago" instead of a time, by the clock of this machine; axes have times of its zone.
  function tick() {
    for (const time of main.querySelectorAll("time")) {
      const at = new Date(time.dateTime), seconds = Math.max(0, Math.round((Date.now() - at) / 1000));
      if ("axis" in time.dataset) write(time, at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));
      else if (seconds < 120) write(time, `${seconds} s ago`);
      else if (seconds < 7200) write(time, `${Math.floor(seconds / 60)} min ago`);
      else write(time, at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));
    }
  }

  let token = sessionStorage.getItem("token"), timer = null;

  // Ask for this page again, and show what has changed.
  async function poll() {
    clearTimeout(timer);
    const headers = new Headers(), used = token;
    try { if (token) headers.set("authorization", `Bearer ${token}`); } catch { ask(true); return; } // no header can hold it
    if (!document.hidden) {
      try {
        const answer = await fetch(location.pathname, { headers });
        if (used !== token) return; // another token has been entered
        if (answer.status === 401) { ask(Boolean(token)); return; }
        if (!answer.ok) throw new Error(String(answer.status));
        if (token) sessionStorage.setItem("token", token);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        renew(main, page.getElementById("content"));
        document.title = page.title;
        write(connection, "");
        tick();
      } catch {
        if (used !== token) return;
        write(connection, "The connection is lost, so these numbers may be out of date. Trying again.");
      }
    }
    timer = setTimeout(poll, pause);
  }

  function ask(refused) {
    sessionStorage.removeItem("token");
    write(connection, refused ? "This token was not accepted." : "");
    const form = document.getElementById("ask"), input = document.getElementById("token");
    if (!form) { location.reload(); return; }
    form.onsubmit = (event) => { event.preventDefault(); token = input.value.trim(); poll(); };
    input.focus();
  }

  if ("locked" in main.dataset && !token) ask(false); else poll();
  document.addEventListener("visibilitychange", () => { if (timer) poll(); });
  setInterval(tick, 1000);
  tick();
}
