// Searches SECTIONS, which sections.js holds, by substring: works from a folder, in every language.
"use strict";

const WORDS = {
  en: { title: "Search", none: "Nothing found.", some: (n) => `${n} found` },
  zh: { title: "搜索", none: "没有找到。", some: (n) => `找到 ${n} 处` },
};

function count(text, word) {
  return text.split(word).length - 1;
}

// Sections that contain every word, best first: headings, then titles, then text; the reader's language first.
function search(sections, query, lang) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const section of words.length ? sections : []) {
    const [title, heading, text] = [section.t, section.h, section.x].map((one) => one.toLowerCase());
    let score = section.l === lang ? 1000 : 0;
    for (const word of words) {
      const here = 20 * count(heading, word) + 8 * count(title, word) + Math.min(5, count(text, word));
      score = here ? score + here : NaN;
    }
    if (!Number.isNaN(score) && (section.l === lang || section.u.startsWith("look-up/"))) found.push({ section, score });
  }
  return found.sort((a, b) => b.score - a.score).map((one) => one.section);
}

function makeSnippet(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word.toLowerCase()) - 40);
  return (at ? "… " : "") + text.slice(at, at + 160) + (at + 160 < text.length ? " …" : "");
}

function show() {
  const given = new URLSearchParams(location.search);
  const lang = given.get("lang") === "zh" ? "zh" : "en";
  const query = (given.get("q") || "").slice(0, 200);
  const words = WORDS[lang];
  document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
  document.getElementById("search-title").textContent = words.title;
  document.getElementById("search-query").value = query;
  document.getElementById("search-query").setAttribute("aria-label", words.title);
  document.getElementById("search-lang").value = lang;
  if (!query) return;
  const found = search(SECTIONS, query, lang);
  document.getElementById("search-count").textContent = found.length ? words.some(found.length) : words.none;
  for (const section of found.slice(0, 50)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = section.u;
    link.textContent = section.h === section.t ? section.t : `${section.t} › ${section.h}`;
    const snippet = document.createElement("p");
    snippet.textContent = makeSnippet(section.x, query.split(/\s+/)[0]);
    item.append(link, snippet);
    document.getElementById("search-results").append(item);
  }
}

if (typeof document !== "undefined") show();
