// SPDX-License-Identifier: Apache-2.0
// Shows the view again after the fleet was read again. What has the focus, and what is unfolded, stays so.
"use strict";
(() => {
  let reading = document.body.dataset.reading;
  const look = async () => {
    try {
      const answer = await fetch("/reading");
      const now = answer.ok ? await answer.text() : reading;
      if (now === reading || document.hidden) return;
      const next = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const active = document.activeElement;
      const focused = active && active.getAttribute("href");
      const typing = active && active.tagName === "INPUT";
      const main = next.querySelector("main");
      if (!main || typing) return;
      reading = now;
      document.querySelector("main").replaceChildren(...main.childNodes);
      if (focused) {
        const again = [...document.querySelectorAll("main a")].find((a) => a.getAttribute("href") === focused);
        if (again) again.focus({ preventScroll: true });
      }
      document.getElementById("lost").hidden = true;
    } catch {
      document.getElementById("lost").hidden = false;
    }
  };
  setInterval(look, 3000);
})();
