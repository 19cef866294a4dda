"use strict";
(function () {
  var table = document.getElementById("ranking");
  if (!table) return;
  var body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
  var skip = { structure: 1 };

  function value(row, i) {
    var cell = row.cells[i], data = cell.querySelector("data");
    return data ? Number(data.value) : cell.textContent.trim();
  }

  // Empty cells last; numbers before texts.
  function compare(a, b, down) {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    var order = typeof a === "number" ? a - b : a.localeCompare(b);
    return down ? -order : order;
  }

  function sort(i) {
    var down = heads[i].getAttribute("aria-sort") === "ascending";
    heads.forEach(function (h) { h.removeAttribute("aria-sort"); });
    heads[i].setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.map(function (row, place) { return { row: row, place: place, key: value(row, i) }; })
      .sort(function (a, b) { return compare(a.key, b.key, down) || a.place - b.place; })
      .forEach(function (x) { body.appendChild(x.row); });
  }

  heads.forEach(function (head, i) {
    if (skip[head.textContent]) return;
    head.classList.add("sort");
    head.tabIndex = 0;
    head.title = "sort by " + head.textContent;
    head.addEventListener("click", function () { sort(i); });
    head.addEventListener("keydown", function (e) {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      sort(i);
    });
  });

  // "MW<300": the column whose name begins so; any other word is looked for in the row.
  function test(word) {
    var m = /^(.+?)(<=|>=|<|>|=)(-?[0-9.]+(?:e-?[0-9]+)?)$/.exec(word), i = -1;
    if (m) i = heads.findIndex(function (h) {
      return h.textContent.toLowerCase().replace(/[^a-z0-9]/g, "").indexOf(m[1].replace(/[^a-z0-9]/g, "")) === 0;
    });
    if (i < 0) return function (row) { return row.textContent.toLowerCase().indexOf(word) >= 0; };
    return function (row) {
      var x = value(row, i), y = Number(m[3]);
      if (typeof x !== "number") return false;
      return m[2] === "<" ? x < y : m[2] === ">" ? x > y : m[2] === "<=" ? x <= y : m[2] === ">=" ? x >= y : x === y;
    };
  }

  function filter() {
    var tests = input.value.toLowerCase().split(/\s+/).filter(Boolean).map(test), n = 0;
    rows.forEach(function (row) {
      row.hidden = !tests.every(function (t) { return t(row); });
      n += !row.hidden;
    });
    count.textContent = n + " of " + rows.length + " shown";
  }

  // Records of a CSV text; a line end in quotes belongs to its record.
  function records(text) {
    var found = [], start = 0, quoted = false;
    for (var k = 0; k < text.length; k++) {
      if (text[k] === '"') quoted = !quoted;
      if (text[k] === "\n" && !quoted) { found.push(text.slice(start, k + 1)); start = k + 1; }
    }
    return found;
  }

  function rank(row) { return Number(value(row, 0)); }
  function shown() { return Array.from(body.rows).filter(function (row) { return !row.hidden; }).map(rank); }

  function csv(text) {
    var all = records(text), byRank = {};
    all.slice(1).forEach(function (line) { byRank[parseInt(line, 10)] = line; });
    return all[0] + shown().map(function (k) { return byRank[k] || ""; }).join("");
  }

  function sdf(text) {
    var byRank = {};
    text.split("$$$$\n").forEach(function (one) {
      var m = /\n> {2}<rank>\n([0-9]+)\n/.exec(one);
      if (m) byRank[m[1]] = one + "$$$$\n";
    });
    return shown().map(function (k) { return byRank[k] || ""; }).join("");
  }

  function offer(id, name, type, choose) {
    var source = document.getElementById(id);
    if (!source) return;
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "Download " + id.toUpperCase();
    button.addEventListener("click", function () {
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([choose(source.textContent)], { type: type }));
      link.download = name;
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
    tools.appendChild(button);
  }

  var tools = document.createElement("div"), label = document.createElement("label");
  var input = document.createElement("input"), count = document.createElement("span");
  tools.className = "tools";
  label.textContent = "Filter ";
  input.type = "search";
  input.placeholder = "words, or conditions: MW<300 TPSA>=60";
  input.addEventListener("input", filter);
  label.appendChild(input);
  tools.appendChild(label);
  count.className = "note";
  tools.appendChild(count);
  offer("csv", "hits.csv", "text/csv", csv);
  offer("sdf", "hits.sdf", "chemical/x-mdl-sdfile", sdf);
  table.parentNode.parentNode.insertBefore(tools, table.parentNode);
  filter();
}());
