"use strict";
{
  const main = document.getElementById("content"), connection = document.getElementById("connection");
  const silence = 40000; // milliseconds without a word after which the connection counts as lost

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

  function show(html) {
    const page = new DOMParser().parseFromString(`<main id="content">${html}</main>`, "text/html");
    renew(main, page.getElementById("content"));
    document.title = main.querySelector("h1").textContent;
    say("");
    tick();
  }

  function say(text) { if (connection.textContent !== text) connection.textContent = text; }

  // "3 s ago" instead of a time, from the clock of this machine; axes have times of its zone
  function tick() {
    for (const time of main.querySelectorAll("time")) {
      if (time.className === "clock") { clock(time); continue; }
      const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time.dateTime)) / 1000));
      const text = seconds < 120 ? `${seconds} s ago` : seconds < 7200 ? `${Math.floor(seconds / 60)} min ago` : new Date(time.dateTime).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
      if (time.textContent !== text) time.textContent = text;
    }
  }

  function clock(time) {
    const parts = time.dataset.parts.split(" "), form = { hourCycle: "h23" };
    if (parts.includes("year")) form.year = "numeric";
    if (parts.includes("day")) Object.assign(form, { day: "numeric", month: "short" });
    if (parts.includes("clock")) Object.assign(form, { hour: "2-digit", minute: "2-digit" });
    if (parts.includes("seconds")) form.second = "2-digit";
    const text = new Date(time.dateTime).toLocaleString("en-GB", form);
    if (time.textContent !== text) time.textContent = text;
  }

  // Read events as they come. Headers carry the token, which an EventSource could not send.
  async function listen(token, control) {
    const headers = new Headers();
    try { if (token) headers.set("authorization", `Bearer ${token}`); } catch { return false; } // no header can hold it
    let alarm = setTimeout(() => control.abort(), silence);
    const answer = await fetch("/live", { headers, signal: control.signal });
    if (answer.status === 401 || answer.status === 403) { clearTimeout(alarm); return false; }
    if (!answer.ok) throw new Error(String(answer.status));
    if (token) sessionStorage.setItem("token", token);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ;) {
      const { done, value } = await reader.read();
      clearTimeout(alarm);
      if (done) return true;
      alarm = setTimeout(() => control.abort(), silence);
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) if (event.startsWith("data: ")) show(JSON.parse(event.slice(6)));
    }
  }

  function ask(refused) {
    sessionStorage.removeItem("token");
    say(refused ? "This token was not accepted." : "");
    const form = document.getElementById("ask");
    if (!form) { location.reload(); return; }
    form.onsubmit = (event) => { event.preventDefault(); follow(document.getElementById("token").value.trim()); };
    document.getElementById("token").focus();
  }

  let followed; // the newest connection: a token that is entered while another one is tried ends that one

  async function follow(token) {
    followed?.abort();
    for (let wait = 1000; ; wait = Math.min(2 * wait, 30000)) {
      const control = followed = new AbortController();
      let accepted;
      try { accepted = await listen(token, control); } catch { /* said below */ }
      if (control !== followed) return;
      if (accepted === false) { ask(Boolean(token)); return; }
      if (accepted) wait = 1000;
      say("The connection is lost, so these numbers may be out of date. Trying again.");
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (control !== followed) return;
    }
  }

  const kept = sessionStorage.getItem("token");
  if ("locked" in main.dataset && !kept) ask(false); else follow(kept);
  setInterval(tick, 1000);
  tick();
}
