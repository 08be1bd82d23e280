
"use strict";
(function () {
  var root = document.documentElement;
  root.classList.add("js");
  var data = JSON.parse(document.getElementById("report-data").textContent);

  // The theme: as the system has it, until somebody chooses.
  var toggle = document.getElementById("theme");
  var wanted = window.matchMedia ? window.matchMedia("(prefers-color-scheme: dark)") : null;
  function isDark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : Boolean(wanted && wanted.matches);
  }
  function nameToggle() {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
    toggle.setAttribute("aria-pressed", String(isDark()));
  }
  toggle.addEventListener("click", function () {
    root.setAttribute("data-theme", isDark() ? "light" : "dark");
    nameToggle();
  });
  if (wanted && wanted.addEventListener) { wanted.addEventListener("change", nameToggle); }
  nameToggle();

  // What a mark says, beside the pointer: titles become a read-out that comes at once.
  var readout = document.getElementById("readout");
  document.querySelectorAll("svg.chart title, svg.spark title, svg.tree title").forEach(function (title) {
    var mark = title.parentNode;
    mark.setAttribute("data-told", title.textContent);
    if (mark.tagName !== "text") { mark.setAttribute("aria-label", title.textContent); }
    title.remove();
  });
  function hide() { readout.hidden = true; }
  document.addEventListener("pointermove", function (event) {
    var mark = event.target.closest ? event.target.closest("svg [data-told]") : null;
    if (!mark) { hide(); return; }
    readout.textContent = mark.getAttribute("data-told");
    readout.hidden = false;
    var box = readout.getBoundingClientRect();
    var left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    var top = event.clientY + 18;
    if (top + box.height > window.innerHeight - 8) { top = event.clientY - box.height - 12; }
    readout.style.left = Math.max(left, 8) + "px";
    readout.style.top = Math.max(top, 8) + "px";
  });
  document.addEventListener("scroll", hide, true);

  // Tables are sorted by the column whose head is pressed.
  function keyOf(row, place) {
    var cell = row.cells[place];
    var order = cell.getAttribute("data-order");
    return order === null ? cell.textContent.trim() : Number(order);
  }
  function compare(a, b) {
    var aIsNumber = typeof a === "number", bIsNumber = typeof b === "number";
    if (aIsNumber && bIsNumber) { return a - b; }
    if (aIsNumber !== bIsNumber) { return aIsNumber ? -1 : 1; }
    return a < b ? -1 : a > b ? 1 : 0;
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var body = table.tBodies[0];
    if (body.rows.length < 2) { return; }
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, place) {
      if (!head.textContent.trim()) { return; }
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var rises = head.getAttribute("aria-sort") !== "ascending";
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (other) {
          other.removeAttribute("aria-sort");
        });
        head.setAttribute("aria-sort", rises ? "ascending" : "descending");
        var rows = Array.prototype.slice.call(body.rows);
        rows.sort(function (a, b) {
          var found = compare(keyOf(a, place), keyOf(b, place));
          return rises ? found : -found;
        });
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  });

  // A click on a node of a tree shows the way to it.
  document.querySelectorAll("svg.tree").forEach(function (svg) {
    var key = svg.getAttribute("data-tree");
    var nodes = new Map((data.trees[key] || []).map(function (node) { return [node.number, node]; }));
    var told = document.querySelector('.node-told[data-told="' + CSS.escape(key) + '"]');
    function choose(number) {
      svg.querySelectorAll(".on-path").forEach(function (own) { own.classList.remove("on-path"); });
      var node = nodes.get(number);
      if (!node) { return; }
      told.textContent = node.rule + ": " + node.says;
      for (var own = node; own; own = own.parent === null ? null : nodes.get(own.parent)) {
        svg.querySelectorAll('[data-node="' + own.number + '"], [data-to="' + own.number + '"]').forEach(function (part) {
          part.classList.add("on-path");
        });
      }
    }
    svg.querySelectorAll("[data-node]").forEach(function (group) {
      var number = Number(group.getAttribute("data-node"));
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.addEventListener("click", function () { choose(number); });
      group.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(number); }
      });
    });
  });

  // Code can be copied.
  document.querySelectorAll("button.copy").forEach(function (button) {
    button.addEventListener("click", function () {
      var code = button.closest(".code").querySelector("code");
      function done() {
        button.textContent = "Copied";
        window.setTimeout(function () { button.textContent = "Copy"; }, 1600);
      }
      function select() {
        var range = document.createRange();
        range.selectNodeContents(code);
        var selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
      }
      if (navigator.clipboard && window.isSecureContext) {
        navigator.clipboard.writeText(code.textContent).then(done, select);
      } else {
        select();
        try { if (document.execCommand("copy")) { done(); } } catch (error) { /* it is selected */ }
      }
    });
  });

  // The contents show which section is being read.
  if ("IntersectionObserver" in window) {
    var links = new Map();
    document.querySelectorAll(".contents a").forEach(function (link) {
      links.set(link.getAttribute("href").slice(1), link);
    });
    var observer = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) { return; }
        links.forEach(function (link) { link.classList.remove("here"); });
        var link = links.get(entry.target.id);
        if (link) { link.classList.add("here"); }
      });
    }, { rootMargin: "-10% 0px -80% 0px" });
    document.querySelectorAll("main > section").forEach(function (section) { observer.observe(section); });
  }
})();
