// SPDX-License-Identifier: Apache-2.0
// Shows the view again after the fleet was read again, unless it follows no changes. What has the focus, is unfolded or scrolled stays so.
"use strict";
(() => {
  let reading = document.body.dataset.reading;
  const kept = () => [...document.querySelectorAll("main a, main summary, main .scroll")];
  const key = (e) => e.getAttribute("href") || e.getAttribute("aria-label") || e.dataset.key;
  const look = async () => {
    try {
      const answer = await fetch("/reading");
      const now = answer.ok ? await answer.text() : reading;
      document.getElementById("lost").hidden = true;
      if (!reading || now === reading || document.hidden) return;
      const next = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const main = next.querySelector("main");
      if (!main || document.activeElement.tagName === "INPUT") return;
      reading = now;
      const before = new Map(kept().map((e) => [key(e), { open: e.parentElement.open, left: e.scrollLeft }]));
      let active = key(document.activeElement);
      document.querySelector("main").replaceChildren(...main.childNodes);
      for (const e of kept()) {
        const was = before.get(key(e));
        if (!was) continue;
        if (e.tagName === "SUMMARY") e.parentElement.open = was.open;
        if (was.left) e.scrollLeft = was.left;
        if (key(e) !== active) continue;
        e.focus({ preventScroll: true });
        active = null; // another link may lead there, too
      }
    } catch {
      document.getElementById("lost").hidden = false;
    }
  };
  setInterval(look, 3000);
})();
