"use strict";
// The browser of single answers. Data become text nodes and nothing else; only what is shown is built.
(() => {
  const CARDS = 3; // texts shown at a time
  const OPEN = 3; // up to so many disturbed texts of a card stand open
  const LONG = 700; // characters of a text that are shown before it is asked for
  const WAIT = 150; // milliseconds without a key before a search is made
  const FIELDS = ["task", "model", "perturb", "level", "flip"];
  const ORDER = {
    perturb: ["typo", "homophone", "redact"],
    level: ["low", "mid", "high"],
    flip: ["right to wrong", "wrong to right", "wrong to other", "same"],
  };
  const SIGNS = { "right to wrong": "↓ ", "wrong to right": "↑ ", "wrong to other": "↔ ", same: "= " };
  const OUTCOMES = {
    unparsed: "no answer could be read in the reply",
    refused: "the model refused to answer",
    empty: "the reply was empty",
    cut: "the reply was cut at its longest length",
    failed: "no reply could be had",
  };

  const at = (id) => document.getElementById(id);
  const examples = JSON.parse(at("items").textContent).examples;
  const answers = examples.flatMap((example) =>
    example.replies.flatMap((reply) => reply.cells.map((cell) => ({ example, reply, cell }))),
  );
  // A task with scores between 0 and 1 is not one of right and wrong.
  const graded = new Set(examples.filter((example) => example.graded).map((example) => example.task));
  const form = at("filters");
  const state = { task: "", model: "", perturb: "", level: "", flip: "", q: "", first: 0 };
  const choices = Object.fromEntries(FIELDS.map((field) => [field, values(field)]));

  function valueOf({ example, reply, cell }, field) {
    return field === "task" ? example.task : field === "model" ? reply.model : cell[field];
  }

  function values(field) {
    const known = ORDER[field] ?? [];
    const rank = (value) => (known.includes(value) ? known.indexOf(value) : known.length);
    return [...new Set(answers.map((answer) => valueOf(answer, field)))].sort((a, b) => rank(a) - rank(b));
  }

  function ranked(field, a, b) {
    return choices[field].indexOf(a) - choices[field].indexOf(b);
  }

  // Elements

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  function given(tag, className, text) {
    const element = make(tag, className, text);
    element.dir = "auto";
    return element;
  }

  function button(label, act) {
    const element = make("button", "", label);
    element.type = "button";
    element.addEventListener("click", act);
    return element;
  }

  // A details element whose inside is built when it is first opened.
  function folded(className, heading, build, isOpen = false) {
    const element = make("details", className, make("summary", "", ...heading));
    let isBuilt = false;
    const fill = () => {
      if (isBuilt || !element.open) return;
      isBuilt = true;
      element.append(build());
    };
    element.addEventListener("toggle", fill);
    element.open = isOpen;
    fill();
    return element;
  }

  // Roles stand though the elements have them: on a narrow screen the style makes blocks of rows.
  function part(tag, role, ...children) {
    const element = make(tag, "", ...children);
    element.setAttribute("role", role);
    return element;
  }

  function table(label, className, columns, rows) {
    const head = columns.map((column) => part("th", "columnheader", column));
    const body = rows.map(([first, ...rest]) => {
      const name = part("th", "rowheader", first);
      name.dir = "auto";
      rest.forEach((cell, index) => {
        cell.setAttribute("role", "cell");
        cell.dataset.label = columns[index + 1];
      });
      return part("tr", "row", name, ...rest);
    });
    const whole = part("table", "table",
      part("thead", "rowgroup", part("tr", "row", ...head)), part("tbody", "rowgroup", ...body));
    whole.className = className;
    const box = make("div", "box", whole);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    return box;
  }

  // Texts

  // Python counts code points, JavaScript halves of surrogate pairs: an emoji is one and two.
  function points(text) {
    return Array.from(text);
  }

  function marked(original, edits) {
    const letters = points(original);
    const parts = [];
    let seen = 0;
    for (const edit of inOrder(edits)) {
      const [start, before] = edit;
      parts.push(letters.slice(seen, start).join(""), change(edit));
      seen = start + points(before).length;
    }
    return [...parts, letters.slice(seen).join("")];
  }

  function inOrder(edits) {
    return [...edits].sort((a, b) => a[0] - b[0]);
  }

  function change([, before, after, op, medical, flags]) {
    const span = make("span", medical ? "edit medical" : "edit");
    if (before) span.append(make("del", "", before));
    if (after) span.append(make("ins", "", after));
    const touched = [...(medical ? ["med"] : []), ...flags];
    if (touched.length) span.append(make("span", "mark", touched.join(", ")));
    span.title = [op, ...(medical ? ["medical word"] : []), ...flags].join(", ");
    return span;
  }

  function passage(children, length) {
    const text = given("p", "text", "");
    text.append(...children);
    if (length <= LONG) return text;
    text.classList.add("cut");
    const more = button(`Show the whole text (${count(length)} characters)`, () => {
      const isCut = text.classList.toggle("cut");
      more.setAttribute("aria-expanded", String(!isCut));
      more.textContent = isCut ? `Show the whole text (${count(length)} characters)` : "Show less";
    });
    more.className = "more";
    more.setAttribute("aria-expanded", "false");
    return make("div", "", text, more);
  }

  function count(number) {
    return number.toLocaleString("en");
  }

  function counted(number, noun) {
    return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
  }

  // Answers

  function verdict({ right, outcome }, task) {
    if (right === null || right === undefined) return make("span", "none", "not judged");
    if (graded.has(task)) return make("span", "verdict", `ROUGE-L ${right.toFixed(2)}`);
    const isRight = right === 1;
    return make("span", `verdict ${isRight ? "right" : "wrong"}`, isRight ? "✓ right" : "✗ wrong");
  }

  function answered(said, task) {
    const scored = !said.outcome || said.outcome === "scored";
    const value = scored ? given("span", "value", said.value ?? "") : make("span", "none", said.outcome);
    if (!scored) value.title = OUTCOMES[said.outcome] ?? said.outcome;
    return make("td", graded.has(task) ? "wide" : "", value, make("br"), verdict(said, task));
  }

  function flip(cell) {
    return make("td", "flip", (SIGNS[cell.flip] ?? "") + (cell.flip ?? ""));
  }

  function quoted(heading, said) {
    const unread = OUTCOMES[said.outcome];
    return [
      make("h4", "", unread ? `${heading}: ${unread}` : heading),
      said.reply ? given("pre", "said", said.reply) : make("p", "none", "(an empty reply)"),
    ];
  }

  function replies(heading, ...pairs) {
    return make("td", "", folded("reply", [heading], () => make("div", "", ...pairs.flatMap((pair) => quoted(...pair)))));
  }

  function answersTo(variant, matched, task) {
    const rows = matched.map(({ reply, cell }) => [
      reply.model,
      answered(reply.clean, task),
      answered(cell, task),
      flip(cell),
      replies("both replies", ["On the original", reply.clean], ["On the disturbed text", cell]),
    ]);
    const columns = ["Model", "On the original", "On the disturbed text", "Change", "Word for word"];
    return table(`Answers on ${variant.perturb}, ${variant.level}`, "answers", columns, rows);
  }

  function everyAnswer(example) {
    const rows = example.replies.flatMap(({ model, clean, cells }) => [
      [model, make("td", "", "none"), make("td", "", ""), answered(clean, example.task), make("td", "", ""),
        replies("reply", ["On the original", clean])],
      ...[...cells].sort(byCondition).map((cell) => [
        model, make("td", "", cell.perturb), make("td", "", cell.level), answered(cell, example.task), flip(cell),
        replies("reply", ["On the disturbed text", cell]),
      ]),
    ]);
    return table(`Every answer on ${example.id}`, "answers", ["Model", "Perturbation", "Level", "Answer", "Change", "Word for word"], rows);
  }

  function byCondition(a, b) {
    return ranked("perturb", a.perturb, b.perturb) || ranked("level", a.level, b.level);
  }

  // Cards

  function changes(edits) {
    const or = (text) => (text ? given("td", "", text) : make("td", "none", "nothing"));
    const rows = inOrder(edits).map(([, before, after, op, medical, flags]) => [
      before || "nothing", or(after), make("td", "", op), make("td", "", medical ? "yes" : "no"), make("td", "", flags.join(", ")),
    ]);
    return table("Changes, one by one", "", ["Before", "After", "How", "Medical word", "Flags"], rows);
  }

  function told(variant, matched) {
    const medical = variant.edits.filter((edit) => edit[4]).length;
    const flips = choices.flip
      .map((name) => [name, matched.filter(({ cell }) => cell.flip === name).length])
      .filter(([, number]) => number)
      .map(([name, number]) => `${count(number)} ${name}`);
    const words = counted(variant.edits.length, "change") + (medical ? ` (${count(medical)} medical)` : "");
    return ` · ${words} · ${counted(matched.length, "answer")}: ${flips.join(", ")}`;
  }

  function variantOf(example, variant, matched, isOpen) {
    const original = example[example.field];
    const heading = [make("strong", "", `${variant.perturb}, ${variant.level}`), make("span", "", told(variant, matched))];
    const build = () => {
      const inside = make("div", "inside", passage(marked(original, variant.edits), points(original).length));
      const label = variant.edits.length === 1 ? "The change" : `The ${count(variant.edits.length)} changes, one by one`;
      if (variant.edits.length) inside.append(folded("changes", [label], () => changes(variant.edits)));
      inside.append(answersTo(variant, matched, example.task));
      return inside;
    };
    return folded("variant", heading, build, isOpen);
  }

  function card(example, matched) {
    const title = given("h3", "", example.id);
    title.tabIndex = -1;
    const element = make("article", "card",
      make("header", "", title, given("p", "", `task ${example.task} · weights ${example.weights}`)));
    for (const field of ["text", "question"]) {
      if (!example[field]) continue;
      element.append(make("h4", "", field === "text" ? "Original text" : "Question"));
      element.append(passage([example[field]], points(example[field]).length));
    }
    element.append(make("h4", "", "Right answer"), given("p", "text target", example.target));
    const variants = [...example.variants].sort(byCondition)
      .map((variant) => [variant, matched.filter(({ cell }) => isOn(cell, variant))])
      .filter(([, own]) => own.length);
    variants.forEach(([variant, own], index) =>
      element.append(variantOf(example, variant, own, index === 0 || variants.length <= OPEN)));
    const total = example.replies.reduce((sum, reply) => sum + reply.cells.length + 1, 0);
    element.append(folded("variant", [make("strong", "", "Every model at every level"),
      make("span", "", ` · ${counted(total, "answer")}, whatever the filters say`)], () => everyAnswer(example)));
    return element;
  }

  function isOn(cell, variant) {
    return cell.perturb === variant.perturb && cell.level === variant.level;
  }

  // Filters

  function matches() {
    const chosen = FIELDS.filter((field) => state[field]);
    const fitting = answers.filter((answer) => chosen.every((field) => valueOf(answer, field) === state[field]));
    const found = new Map();
    for (const answer of fitting) {
      if (!found.has(answer.example)) found.set(answer.example, []);
      found.get(answer.example).push(answer);
    }
    return state.q ? searched(found, pattern(state.q)) : found;
  }

  function pattern(words) {
    return new RegExp(words.trim().replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/\s+/g, "\\s+"), "iu");
  }

  function searched(found, wanted) {
    const has = (text) => typeof text === "string" && wanted.test(text);
    const kept = new Map();
    for (const [example, own] of found) {
      const isWhole = [example.id, example.text, example.question, example.target].some(has);
      const changed = isWhole ? [] : example.variants.filter((variant) => variant.edits.some((edit) => has(edit[2])));
      const hit = isWhole ? own : own.filter(({ reply, cell }) =>
        [cell.reply, cell.value, reply.clean.reply, reply.clean.value].some(has) ||
        changed.some((variant) => isOn(cell, variant)));
      if (hit.length) kept.set(example, hit);
    }
    return kept;
  }

  // Shows

  function show() {
    const found = [...matches()];
    const number = found.reduce((sum, [, own]) => sum + own.length, 0);
    if (state.first >= found.length) state.first = 0;
    at("count").textContent =
      `${count(number)} of ${counted(answers.length, "answer")}, on ${count(found.length)} of ${counted(examples.length, "text")}`;
    const shown = found.slice(state.first, state.first + CARDS);
    at("cards").replaceChildren(...(shown.length ? shown.map(([example, own]) => card(example, own)) : [nothing()]));
    for (const id of ["pager-top", "pager-end"]) at(id).replaceChildren(...pager(found.length));
    for (const field of FIELDS) form.elements[field].classList.toggle("chosen", Boolean(state[field]));
  }

  function nothing() {
    return make("div", "empty", make("p", "", "No answer matches these filters. Choose fewer of them, or clear them all."));
  }

  function pager(total) {
    if (total <= CARDS) return [];
    const turn = (label, first) => {
      const element = button(label, () => {
        state.first = first;
        keep();
        show();
        const title = at("cards").querySelector("h3");
        title.focus({ preventScroll: true });
        at("count").scrollIntoView();
      });
      element.disabled = first < 0 || first >= total;
      return element;
    };
    const last = Math.min(state.first + CARDS, total);
    const place = make("span", "", `Texts ${count(state.first + 1)} to ${count(last)} of ${count(total)}`);
    return [turn("← Previous", state.first - CARDS), place, turn("Next →", state.first + CARDS)];
  }

  // The address holds the view, so that it can be sent to somebody.

  const PLACE = "#answers?";

  function keep() {
    const view = new URLSearchParams();
    for (const field of [...FIELDS, "q"]) if (state[field]) view.set(field, state[field]);
    if (state.first) view.set("first", String(state.first + 1));
    const told = String(view);
    history.replaceState(null, "", told ? PLACE + told : "#answers");
  }

  function read() {
    if (!location.hash.startsWith(PLACE)) return false;
    const told = new URLSearchParams(location.hash.slice(PLACE.length));
    for (const field of FIELDS) {
      const value = told.get(field) ?? "";
      state[field] = choices[field].includes(value) ? value : "";
    }
    state.q = told.get("q") ?? "";
    state.first = Math.max(0, Math.floor((Number(told.get("first")) - 1) / CARDS) * CARDS) || 0;
    for (const field of [...FIELDS, "q"]) form.elements[field].value = state[field];
    return true;
  }

  function changed() {
    for (const field of [...FIELDS, "q"]) state[field] = form.elements[field].value;
    if (!state.q.trim()) state.q = "";
    state.first = 0;
    keep();
    show();
  }

  function begin() {
    if (!answers.length) {
      at("cards").append(make("div", "empty", make("p", "", "This report shows no single answers.")));
      return;
    }
    for (const field of FIELDS) {
      form.elements[field].append(new Option("all", ""), ...choices[field].map((value) => new Option((SIGNS[value] ?? "") + value, value)));
    }
    let waiting = 0;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(changed, event.target.name === "q" ? WAIT : 0);
    });
    form.addEventListener("reset", () => setTimeout(changed, 0));
    addEventListener("hashchange", () => {
      if (read()) show();
    });
    form.hidden = false;
    at("legend").hidden = false;
    const isLinked = read();
    show();
    if (isLinked) at("answers").scrollIntoView();
  }

  begin();
})();
